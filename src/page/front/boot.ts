// Loads the page once more where one of its files did not arrive. Browsers give up what they are loading whenever an
// address comes or goes on the machine, and on a node each pod brings one.

const TRIES = 20;
const AGAIN_MS = 1000;

addEventListener(
  'error',
  ({ target }) => {
    if (!(target instanceof HTMLScriptElement || target instanceof HTMLLinkElement)) return;
    const tried = Number(sessionStorage.getItem('tried') ?? 0);
    sessionStorage.setItem('tried', String(tried + 1));
    if (tried < TRIES) setTimeout(() => location.reload(), AGAIN_MS);
  },
  true,
);
addEventListener('load', () => document.querySelector('#nav a') !== null && sessionStorage.removeItem('tried'));
