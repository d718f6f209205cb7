// Finds out if an address and port can be bound before HAProxy gets them: HAProxy refuses the whole file because of one
// that cannot.
// Why: docs/design/decisions/0019-addresses-are-probed.md

import { createServer } from 'node:net';

/**
 * Why the address and port cannot be bound, a phrase without a full stop; undefined if they can, or if only HAProxy can find out.
 * `ignoreAccess`: HAProxy may bind low ports although the agent may not.
 */
export function probeBind(address: string, port: number, ignoreAccess: boolean): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EACCES' && ignoreAccess ? undefined : whyUnbindable(error.code, address, port)),
    );
    server.listen({ host: address, port, exclusive: true, backlog: 1, ipv6Only: true }, () => {
      server.close(() => resolve(undefined));
    });
  });
}

/** The system had nothing left for the socket, which says nothing about the address and port. */
const SHORTAGES: readonly unknown[] = ['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS'];

/** The reason for an error code; undefined for a code that is not about the address and port. */
export function whyUnbindable(code: string | undefined, address: string, port: number): string | undefined {
  switch (code) {
    case 'EADDRINUSE':
      return `another program listens on ${address} port ${port} (find it with: ss -ltnp)`;
    case 'EADDRNOTAVAIL': {
      const family = address.includes(':') ? 'ipv6' : 'ipv4';
      return `${address} is no address of this host and sysctl net.${family}.ip_nonlocal_bind is off`;
    }
    case 'EAFNOSUPPORT':
    case 'EPROTONOSUPPORT':
      return `this host has no ${address.includes(':') ? 'IPv6' : 'IPv4'}`;
    case 'EACCES':
      if (port < 1024) return 'ports below 1024 need root or CAP_NET_BIND_SERVICE';
      return 'the security policy of this host forbids it';
    default:
      return code === undefined || SHORTAGES.includes(code) ? undefined : `this host refuses it (${code})`;
  }
}
