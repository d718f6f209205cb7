// An address with a port as one text: `192.0.2.1:80`, `[2001:db8::1]:80`. Pure.

import { isIP } from 'node:net';

export function socketAddress(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}

/** undefined for any other text. The port may be 0. */
export function parseSocketAddress(
  text: string,
): { readonly address: string; readonly port: number } | undefined {
  const [, v6, v4, digits] = /^(?:\[([0-9A-Fa-f:.]+)\]|([0-9.]+)):(\d{1,5})$/.exec(text) ?? [];
  const [address, port] = [v6 ?? v4 ?? '', Number(digits)];
  return isIP(address) === (v6 === undefined ? 4 : 6) && port <= 65_535 ? { address, port } : undefined;
}
