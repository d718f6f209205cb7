// The real oauth2-proxy as a process that a test may stop, kill and start again, and a client that signs in at it.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { eventually } from '../basics/eventually.ts';
import { kubePrograms } from '../kube/kube.ts';
import { type Answer, request } from './echo.ts';
import type { Place } from './traffic.ts';

export const CLIENT_ID = 'headgate';

export interface Oauth2Proxy {
  /** `address:port`. */
  readonly place: string;
  readonly child: ChildProcess;
  /** Resolves when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Resolves when it answers. All of them accept one another's cookies. */
export async function startOauth2Proxy(
  t: ExecutionContext,
  issuer: string,
  place: string,
): Promise<Oauth2Proxy> {
  const { 'oauth2-proxy': program = '' } = await kubePrograms(['oauth2-proxy']);
  const child = spawn(
    program,
    [
      ...[`--http-address=${place}`, '--provider=oidc', `--oidc-issuer-url=${issuer}`],
      ...[`--client-id=${CLIENT_ID}`, '--client-secret=secret', `--cookie-secret=${'c'.repeat(32)}`],
      ...['--cookie-secure=false', '--email-domain=*', '--reverse-proxy=true', '--upstream=static://200'],
      ...['--set-xauthrequest=true', '--skip-provider-button=true'],
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'close');
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    child.kill(signal);
    await ended;
  };
  t.teardown(() => end('SIGKILL'));
  const [address = '', port] = place.split(':');
  await eventually(
    async () =>
      request({ address, port: Number(port) }, '/ping', { headers: { host: 'auth' } }).catch(() => undefined),
    (answer) => answer?.status === 200,
  );
  return { place, child, end };
}

/** Follows redirects, and keeps cookies by host, as a browser. */
export class Visitor {
  readonly cookies = new Map<string, string>();
  readonly #place: Place;

  constructor(place: Place) {
    this.#place = place;
  }

  /** The value of its header `Cookie`. */
  get cookie(): string {
    return [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  }

  async visit(from: string, most = 10): Promise<Answer & { readonly hops: readonly string[] }> {
    const hops: string[] = [];
    for (let url = new URL(from); ; ) {
      hops.push(`${url.host}${url.pathname}`);
      const isOurs = url.hostname.endsWith('.example.org');
      const place = isOurs ? this.#place : { address: url.hostname, port: Number(url.port) };
      const headers = { host: url.host, ...(isOurs && this.cookie !== '' && { cookie: this.cookie }) };
      const answer = await request(place, url.pathname + url.search, { headers });
      for (const [, name = '', value = ''] of (answer.headers['set-cookie'] ?? '').matchAll(
        /(?:^|, )(_oauth2[^=]*)=([^;]*)/g,
      ))
        if (value === '') this.cookies.delete(name);
        else this.cookies.set(name, value);
      if (answer.headers.location === undefined || hops.length === most) return { ...answer, hops };
      url = new URL(answer.headers.location, url);
    }
  }
}
