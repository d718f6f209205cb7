// The real external-dns, which publishes names of a real API server's objects in a name server, and ends with the test.
// test/support/kube/kube-assets.sh builds it, with the provider of RFC 2136 alone.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import { freePort } from '../basics/free-port.ts';
import { type Kube, kubePrograms } from '../kube/kube.ts';
import { type NameServer, TSIG, ZONE } from './name-server.ts';

/** Returns what it has logged so far. */
export async function startExternalDns(
  t: Pick<ExecutionContext<unknown>, 'teardown'>,
  kube: Kube,
  server: NameServer,
): Promise<() => string> {
  const { 'external-dns': program = '' } = await kubePrograms(['external-dns']);
  const child = spawn(
    program,
    [
      '--source=service',
      '--source=ingress',
      '--source=gateway-httproute',
      `--kubeconfig=${kube.kubeconfig}`,
      '--provider=rfc2136',
      '--rfc2136-host=127.0.0.1',
      `--rfc2136-port=${server.port}`,
      `--rfc2136-zone=${ZONE}`,
      `--rfc2136-tsig-keyname=${TSIG.name}`,
      `--rfc2136-tsig-secret=${TSIG.secret}`,
      `--rfc2136-tsig-secret-alg=${TSIG.algorithm}`,
      '--rfc2136-tsig-axfr',
      '--txt-owner-id=headgate-test',
      '--policy=sync',
      '--interval=1s',
      '--events',
      '--min-event-sync-interval=1s',
      `--metrics-address=127.0.0.1:${await freePort()}`,
      '--log-level=debug',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const ended = once(child, 'close');
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      log = `${log}${text}`.slice(-1_000_000);
    });
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return () => log;
}
