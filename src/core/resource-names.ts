// What a resource's name says about it. Pure.
import { qualifiedName } from './names.ts';

/** No domain, or Kubernetes' own. */
export const isNativeResource = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');

/** Resources of somebody else's domain, such as a device plugin's. */
export const isExtendedResource = (name: string): boolean =>
  !isNativeResource(name) && !name.startsWith('requests.') && qualifiedName(`requests.${name}`).length === 0;
