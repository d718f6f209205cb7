import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect as connectPlain, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import ava, { type ExecutionContext } from 'ava';
import { readCredentials } from '../../../../agent/pair/peers/credentials.ts';
import type { PeerTimeouts, Refusal } from '../../../../agent/pair/peers/heard-peer.ts';
import { PeerLink } from '../../../../agent/pair/peers/peer-link.ts';
import { PeerListener, type PeerListenerHooks } from '../../../../agent/pair/peers/peer-listener.ts';
import { PeerSender, type PeerSenderOptions } from '../../../../agent/pair/peers/peer-sender.ts';
import { type PairReport, reportText } from '../../../../agent/pair/peers/report.ts';
import { requires } from '../../../support/basics/requirements.ts';
import { until } from '../../../support/basics/until.ts';
import { ownNetwork } from '../../../support/host/own-network.ts';
import { silentLog } from '../../../support/values/silent-log.ts';
import { makeCredentials } from '../../../support/vrrp/pair-credentials.ts';
import { pairReport } from '../../../support/vrrp/pair-report.ts';

const test = requires(ava, { programs: ['openssl'] });

interface Side {
  readonly link: PeerLink;
  /** Taken up by the next renew(). */
  readonly addresses: { own: string; peers: readonly string[] };
  readonly refused: Refusal[];
  readonly proved: string[];
  report: PairReport;
}

/** Two addresses that no other test has, a port, and credentials. */
class Rig {
  readonly own: string;
  readonly peer: string;
  readonly stranger: string;
  readonly port = randomInt(20_000, 30_000);
  readonly folder: string;
  readonly credentials: string;

  private constructor(network: string, folder: string, credentials: string) {
    [this.own, this.peer, this.stranger] = [`${network}.1`, `${network}.2`, `${network}.3`];
    this.folder = folder;
    this.credentials = credentials;
  }

  static async create(t: ExecutionContext): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), 'headgate-pair-'));
    t.teardown(() => rm(folder, { recursive: true }));
    return new Rig(await ownNetwork(t), folder, await makeCredentials(folder));
  }

  async side(
    t: ExecutionContext,
    ownAddress = this.own,
    credentials = this.credentials,
    peers?: readonly string[],
  ): Promise<Side> {
    const refused: Refusal[] = [];
    const proved: string[] = [];
    const addresses = { own: ownAddress, peers: peers ?? [ownAddress === this.own ? this.peer : this.own] };
    const link = new PeerLink({
      addresses: () => ({ ...addresses }),
      port: this.port,
      credentials,
      report: () => side.report,
      tables: () => '',
      hooks: {
        onPeer: () => undefined,
        onProved: async ({ fingerprint }) => {
          proved.push(fingerprint);
        },
        onRefused: (why) => refused.push(why),
      },
      log: silentLog(),
    });
    const side: Side = { link, addresses, refused, proved, report: { ...pairReport, version: ownAddress } };
    t.teardown(() => link.close());
    await link.renew();
    return side;
  }

  /** What hears the peer, and nothing else. */
  async listener(
    t: ExecutionContext,
    change: Partial<PeerTimeouts> & Partial<PeerListenerHooks> & { readonly address?: string } = {},
  ): Promise<PeerListener> {
    const { address = this.own, report = 2_000, connection = 10_000, ...hooks } = change;
    const listener = new PeerListener({
      own: { address, port: this.port },
      peers: [this.peer],
      credentials: await readCredentials(this.credentials),
      timeouts: { report, connection },
      hooks: {
        onListening: async () => undefined,
        onPeer: () => undefined,
        onRefused: () => undefined,
        ...hooks,
      },
      log: silentLog(),
    });
    t.teardown(() => listener.close());
    await listener.start();
    return listener;
  }

  /** What the peer says, and nothing else. */
  async sender(t: ExecutionContext, change: Partial<PeerSenderOptions>): Promise<PeerSender> {
    const sender = new PeerSender({
      ownAddress: this.peer,
      peer: { address: this.own, port: this.port },
      credentials: await readCredentials(this.credentials),
      report: () => pairReport,
      intervalMs: 100,
      timeoutMs: 2_000,
      handshakeTimeoutMs: 10_000,
      ...change,
    });
    t.teardown(() => sender.close());
    sender.start();
    return sender;
  }

  /** A connection to the first side as the peer would make it, unless something else is said. */
  async client(
    t: ExecutionContext,
    change: ConnectionOptions & { localAddress?: string } = {},
  ): Promise<TLSSocket> {
    const pem = await readFile(this.credentials, 'utf8');
    const options = {
      host: this.own,
      port: this.port,
      localAddress: this.peer,
      key: pem,
      cert: pem,
      ca: pem,
    };
    const socket = connect({
      ...options,
      checkServerIdentity: () => undefined,
      ...change,
    } as ConnectionOptions);
    socket.on('error', () => undefined);
    t.teardown(() => socket.destroy());
    return socket;
  }
}

/** Whether by an error or not. */
function ended(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

test('Two agents exchange reports, at once after a change, and each gets a confirmation', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  t.regex(a.link.fault, /is not heard/);
  const b = await rig.side(t, rig.peer);
  await until('both are heard', () => a.link.fault === '' && b.link.fault === '');
  t.is(a.link.peer?.version, rig.peer);
  t.is(b.link.peer?.version, rig.own);
  t.deepEqual([a.proved.length, b.proved.length], [1, 1]);
  a.report = { ...a.report, roles: { 'vrrp-51': 'master' } };
  a.link.send();
  await until('the change is heard', () => b.link.peer?.roles['vrrp-51'] === 'master');
});

test('Three agents hear one another, and each knows which of the others it does not hear', async (t) => {
  const rig = await Rig.create(t);
  const all = [rig.own, rig.peer, rig.stranger];
  const sides = await Promise.all(
    all.map((own) =>
      rig.side(
        t,
        own,
        rig.credentials,
        all.filter((each) => each !== own),
      ),
    ),
  );
  const [a, b, c] = sides as [Side, Side, Side];
  await until('all are heard', () => sides.every(({ link }) => link.fault === ''));
  t.is(a.link.reportOf(rig.peer)?.version, rig.peer);
  t.is(a.link.reportOf(rig.stranger)?.version, rig.stranger);
  b.report = { ...b.report, roles: { 'vrrp-51': 'master' } };
  b.link.send();
  for (const { link } of [a, c])
    await until('both hear the change', () => link.reportOf(rig.peer)?.roles['vrrp-51'] === 'master');
  t.deepEqual(a.link.reportOf(rig.stranger)?.roles, c.report.roles);
  c.link.close();
  await until('one is unknown', () => a.link.reportOf(rig.stranger) === undefined);
  t.not(a.link.reportOf(rig.peer), undefined);
  t.is(a.link.fault, `The peer ${rig.stranger} is not heard`);
});

test('Changed addresses are used, and connections from the former ones are ended', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const b = await rig.side(t, rig.peer);
  await until('both are heard', () => a.link.fault === '' && b.link.fault === '');
  b.addresses.own = rig.stranger;
  await b.link.renew();
  t.is(b.link.peer, undefined);
  await until('it is not heard from there', () => a.refused.includes('address'));
  a.addresses.peers = [rig.stranger];
  await a.link.renew();
  await until('both are heard again', () => a.link.fault === '' && b.link.fault === '');
  t.deepEqual([a.proved.length, b.proved.length], [2, 2]);
  await a.link.renew();
  t.is(a.link.fault, '');
  t.is(a.proved.length, 2);
});

test('A peer that ends is soon unknown, and known again when it comes back', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const first = await rig.side(t, rig.peer);
  await until('it is heard', () => a.link.peer !== undefined);
  first.link.close();
  await until('it is unknown', () => a.link.peer === undefined);
  t.not(a.link.fault, '');
  await rig.side(t, rig.peer);
  await until('it is heard again', () => a.link.fault === '');
});

test('A host that loses its peer during changes sends reports again when it is back', async (t) => {
  const rig = await Rig.create(t);
  const b = await rig.side(t, rig.peer);
  // What only hears: this host is not reminded of its peer by what that one tells.
  for (let round = 0; round < 3; round++) {
    const listener = await rig.listener(t);
    await t.notThrowsAsync(until('it is heard', () => listener.reportOf(rig.peer) !== undefined));
    b.link.send();
    listener.close();
    await delay(50);
  }
});

test('A peer with a late handshake gets reports all the same', async (t) => {
  const rig = await Rig.create(t);
  const listener = await rig.listener(t, { address: rig.stranger });
  // In front of the peer, as a machine that gets to it late.
  const late = createServer(async (from) => {
    from.on('error', () => undefined).pause();
    await delay(700);
    const to = connectPlain({ host: rig.stranger, port: rig.port, localAddress: rig.peer });
    to.on('error', () => undefined);
    from.pipe(to).pipe(from);
  });
  late.listen(rig.port, rig.own);
  t.teardown(() => late.close());
  const sender = await rig.sender(t, { timeoutMs: 500, handshakeTimeoutMs: 60_000 });
  await t.notThrowsAsync(
    until('it is heard', () => listener.reportOf(rig.peer) !== undefined && sender.fault === ''),
  );
});

test('A peer that was stopped for a while is unknown in the meantime, and continues on the same connection', async (t) => {
  const rig = await Rig.create(t);
  const known: boolean[] = [];
  const onPeer = (): void => {
    known.push(listener.reportOf(rig.peer) !== undefined);
  };
  const listener = await rig.listener(t, { report: 200, connection: 60_000, onPeer });
  const socket = await rig.client(t);
  socket.write(reportText(pairReport));
  await until('it is heard, and unknown', () => known.join() === 'true,false');
  socket.write(reportText(pairReport));
  await until('it is heard again', () => known.length > 2);
  t.deepEqual(known.slice(0, 3), [true, false, true]);
});

test('Connections to a peer without a handshake or without an answer are ended', async (t) => {
  const rig = await Rig.create(t);
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
  silent.listen(rig.port, rig.own);
  t.teardown(() => {
    silent.close();
    for (const socket of sockets) socket.destroy();
  });
  const sender = await rig.sender(t, { timeoutMs: 60_000, handshakeTimeoutMs: 100 });
  await until('it is given up', () => / does not complete the handshake within 100 ms$/.test(sender.fault));
  await until('it is tried again', () => sockets.length > 1);

  const other = await Rig.create(t);
  const pem = await readFile(other.credentials, 'utf8');
  const options = { key: pem, cert: pem, ca: pem, requestCert: true };
  const mute = createTlsServer(options, (socket) =>
    sockets.push(socket.on('error', () => undefined).resume()),
  );
  mute.listen(other.port, other.own);
  t.teardown(() => mute.close());
  const unheard = await other.sender(t, { timeoutMs: 300 });
  await t.notThrowsAsync(
    until('it is given up', () => / does not answer within 300 ms$/.test(unheard.fault)),
  );
});

test('Without a trusted certificate no report is accepted in either direction', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const b = await rig.side(t, rig.peer, await makeCredentials(rig.folder, 'other'));
  await until('it is refused', () => a.refused.includes('handshake') || b.refused.includes('handshake'));
  t.is(a.link.peer, undefined);
  t.is(b.link.peer, undefined);

  const nameless = await rig.client(t, { key: undefined, cert: undefined } as ConnectionOptions);
  await ended(nameless);
  t.is(a.link.peer, undefined);
});

test('TLS before 1.3 and clear text are refused', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const old = await rig.client(t, { maxVersion: 'TLSv1.2' });
  await ended(old);
  const plain = connectPlain({ host: rig.own, port: rig.port, localAddress: rig.peer });
  plain.on('error', () => undefined);
  plain.write(reportText(pairReport));
  await ended(plain);
  t.deepEqual(a.refused, ['handshake', 'handshake']);
  t.is(a.link.peer, undefined);
});

test("A connection from another address than the peer's is refused with any certificate", async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const socket = await rig.client(t, { localAddress: rig.stranger });
  socket.write(reportText(pairReport));
  await ended(socket);
  t.deepEqual(a.refused, ['address']);
  t.is(a.link.peer, undefined);
});

for (const [title, text] of [
  ['A message that was tampered with', reportText(pairReport).replace('"synced":true', '"synced":maybe')],
  ['A message that is too long', 'x'.repeat(100_000)],
] as const) {
  test(`${title} ends the connection`, async (t) => {
    const rig = await Rig.create(t);
    const a = await rig.side(t);
    const socket = await rig.client(t);
    socket.write(text);
    socket.resume();
    await ended(socket);
    t.deepEqual(a.refused, ['message']);
    t.is(a.link.peer, undefined);
  });
}

test('A recorded connection that is played again is refused', async (t) => {
  const rig = await Rig.create(t);
  const a = await rig.side(t);
  const recorded: Buffer[] = [];
  // Between the peer and the agent, as one who has the wire.
  const tap = createServer((from) => {
    const to = connectPlain({ host: rig.own, port: rig.port, localAddress: rig.peer });
    from.on('data', (chunk: Buffer) => recorded.push(chunk)).on('error', () => undefined);
    to.on('error', () => undefined);
    from.pipe(to).pipe(from);
  });
  tap.listen(rig.port, rig.stranger);
  t.teardown(() => tap.close());
  await once(tap, 'listening');
  const socket = await rig.client(t, { host: rig.stranger });
  socket.write(reportText({ ...pairReport, roles: { 'vrrp-51': 'master' } }));
  await until('it was heard', () => a.link.peer !== undefined);
  socket.destroy();
  await until('it is unknown', () => a.link.peer === undefined);

  const replay = connectPlain({ host: rig.own, port: rig.port, localAddress: rig.peer });
  replay.on('error', () => undefined).resume();
  for (const chunk of recorded) replay.write(chunk);
  await ended(replay);
  t.is(a.link.peer, undefined);
  t.is(a.refused.at(-1), 'handshake');
});

test('Silent connections from the address of the peer do not keep the peer out', async (t) => {
  const rig = await Rig.create(t);
  const listener = await rig.listener(t);
  const silent = Array.from({ length: 40 }, () =>
    connectPlain({ host: rig.own, port: rig.port, localAddress: rig.peer }).on('error', () => undefined),
  );
  t.teardown(() => {
    for (const socket of silent) socket.destroy();
  });
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  const sender = await rig.sender(t, {});
  await until('the peer gets in', () => listener.reportOf(rig.peer) !== undefined && sender.fault === '');
  await until('the oldest give way', () => silent.filter(({ closed }) => !closed).length <= 16);
  // The connection of the peer is none of those that give way.
  const more = Array.from({ length: 40 }, () =>
    connectPlain({ host: rig.own, port: rig.port, localAddress: rig.peer }).on('error', () => undefined),
  );
  silent.push(...more);
  await Promise.all(more.map((socket) => once(socket, 'connect')));
  await until('the oldest give way again', () => more.filter(({ closed }) => !closed).length <= 16);
  t.is(sender.fault, '');
  t.not(listener.reportOf(rig.peer), undefined);
});

test('A connection without a report is ended', async (t) => {
  const rig = await Rig.create(t);
  const refused: Refusal[] = [];
  await rig.listener(t, { connection: 500, onRefused: (why) => refused.push(why) });
  const socket = await rig.client(t);
  socket.resume();
  await ended(socket);
  t.regex(refused.join(), /^(silence|handshake)$/);
});

test('Unusable credentials are a fault, and later ones are used', async (t) => {
  const rig = await Rig.create(t);
  const path = join(rig.folder, 'later.pem');
  const a = await rig.side(t, rig.own, path);
  t.regex(a.link.fault, /Cannot use the credentials of the pair in .*later\.pem/);
  t.deepEqual(a.proved, []);
  await makeCredentials(rig.folder, 'later');
  await a.link.renew();
  t.regex(a.link.fault, /is not heard/);
  t.is(a.proved.length, 1);
  await a.link.renew();
  t.is(a.proved.length, 1);
});
