// URLs as they may be shown: user information and queries are places where people put credentials.

export const MASK = '<masked>';

/** `https://user:secret@host/?token=x` → `https://<masked>@host/?<masked>` */
export const maskUrl = (url: string): string =>
  url.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/@?#]*@/i, `$1${MASK}@`).replace(/\?[^#]+/, `?${MASK}`);
