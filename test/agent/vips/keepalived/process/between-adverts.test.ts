import test from 'ava';
import fc from 'fast-check';
import { createLog } from '../../../../../agent/host/log.ts';
import { BetweenAdverts } from '../../../../../agent/vips/keepalived/process/between-adverts.ts';
import type { InstanceState } from '../../../../../agent/vips/keepalived/states/vrrp-states.ts';
import type { VrrpSettings, VrrpStateName } from '../../../../../agent/vips/vrrp.ts';

/** Milliseconds: for which keepalived hears nothing at a reload, and what `nft` takes. */
const DEAF = 30;
const NFT = 8;

interface Master {
  readonly router: number;
  /** Milliseconds from 0: of its first advertisement. */
  readonly phase: number;
}

/** A backup of these masters, in a time that passes only where something takes time. */
function backup(masters: readonly Master[], { interval = 200, lastAt = Number.POSITIVE_INFINITY } = {}) {
  const seen = { now: 0, begun: -1, ended: 0, reloads: [] as number[], log: '' };
  const spend = async (milliseconds: number): Promise<void> => {
    seen.now += milliseconds;
  };
  /** Of one master, the last advertisement before a moment. */
  const before = ({ phase }: Master, moment: number): number =>
    phase + Math.floor((Math.min(moment, lastAt) - phase) / interval) * interval;
  const between = new BetweenAdverts({
    ages: {
      begin: async () => {
        await spend(NFT);
        seen.begun = seen.now;
      },
      read: async () => {
        const heard = masters.filter((each) => before(each, seen.now) >= seen.begun);
        const ages = new Map(heard.map((each) => [each.router, seen.now - before(each, seen.now)]));
        await spend(NFT);
        return ages;
      },
      end: async () => {
        seen.ended++;
      },
    },
    vrrp: () => settings([50, ...masters.map(({ router }) => router)], interval),
    states: { of: (name) => stateOf(name === 'vrrp-50' ? 'master' : 'backup') },
    log: createLog({
      level: 'debug',
      destination: { write: (line) => (seen.log += line) },
      format: 'json',
    }),
    now: () => seen.now,
    wait: spend,
  });
  const reload = () =>
    between.run(async () => {
      seen.reloads.push(seen.now);
      await spend(DEAF);
      return 'reloaded';
    });
  const missed = (from: number): number =>
    masters.filter((each) => before(each, from + DEAF) > from && before(each, from + DEAF) <= lastAt).length;
  return { seen, between, reload, missed };
}

function settings(routers: readonly number[], advertInterval: number): VrrpSettings {
  const instances = routers.map((virtualRouterId) => ({ virtualRouterId, priority: 200, anchors: [] }));
  return { interface: 'eth0', address: '10.0.0.1', peers: ['10.0.0.2'], advertInterval, instances };
}

function stateOf(state: VrrpStateName): InstanceState {
  const reached = { master: 0, backup: 0, fault: 0, unknown: 0 };
  return {
    state,
    since: undefined,
    transitions: 0,
    priority: 200,
    adverts: { sent: 0, received: 0 },
    reached,
  };
}

const somePhase = fc.integer({ min: 0, max: 199 });

test('run() reloads so that no advertisement of up to three masters falls into it, within three intervals', async (t) => {
  const some = fc.array(somePhase, { minLength: 1, maxLength: 3 });
  await fc.assert(
    fc.asyncProperty(some, async (phases) => {
      const { seen, reload, missed } = backup(phases.map((phase, at) => ({ router: 51 + at, phase })));
      t.is(await reload(), 'reloaded');
      const [at = Number.NaN] = seen.reloads;
      t.is(missed(at), 0, `reloaded at ${at}`);
      t.true(at <= 3 * 200, `reloaded at ${at}`);
      t.is(seen.ended, 1);
    }),
  );
});

test('run() does it at once where this host is backup of none', async (t) => {
  const { seen, reload } = backup([]);
  await reload();
  t.deepEqual(seen.reloads, [0]);
  t.is(seen.ended, 0);
});

test('run() does it at once where advertisements are seconds apart', async (t) => {
  const { seen, reload } = backup([{ router: 51, phase: 100 }], { interval: 2_000 });
  await reload();
  t.deepEqual(seen.reloads, [0]);
});

test('run() does not wait for a master that is silent', async (t) => {
  const { seen, reload } = backup([{ router: 51, phase: 100 }], { lastAt: -1 });
  await reload();
  t.true((seen.reloads[0] ?? Number.NaN) < 250);
});

test('run() waits for an advertisement that is late, but not for ever', async (t) => {
  const { seen, reload } = backup([{ router: 51, phase: 100 }], { lastAt: 110 });
  await reload();
  const [at = Number.NaN] = seen.reloads;
  t.true(at > 310 && at < 2_050, `reloaded at ${at}`);
});

test('run() reloads all the same where nft fails, and says so once', async (t) => {
  let isMissing = true;
  const seen = { reloads: 0, log: '' };
  const between = new BetweenAdverts({
    ages: {
      begin: async () => {
        if (isMissing) throw new Error('No nft');
      },
      read: async () => {
        throw new Error('No table');
      },
      end: async () => undefined,
    },
    vrrp: () => settings([51], 200),
    states: { of: () => stateOf('backup') },
    log: createLog({
      level: 'debug',
      destination: { write: (line) => (seen.log += line) },
      format: 'json',
    }),
    wait: async () => undefined,
  });
  const reload = () =>
    between.run(async () => {
      seen.reloads++;
    });
  await reload();
  await reload();
  isMissing = false;
  await reload();
  t.is(seen.reloads, 3);
  t.is(seen.log.split('No nft').length, 2);
  t.is(seen.log.split('No table').length, 2);
});

test('run() takes the rules away also where the reload fails', async (t) => {
  const { seen, between } = backup([{ router: 51, phase: 100 }]);
  await t.throwsAsync(
    between.run(() => Promise.reject(new Error('Not reloaded'))),
    {
      message: 'Not reloaded',
    },
  );
  t.is(seen.ended, 1);
});
