// Names of flags and annotations from names in the code. Pure.

/** `drainTimeout` gives `drain-timeout`; `externalIPs` gives `external-ips`. */
export function kebabCase(name: string): string {
  return name.replaceAll(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
}
