import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import test from 'ava';
import fc from 'fast-check';
import { AclIds } from '../../../agent/haproxy/config/acl-ids.ts';
import {
  backendsOf,
  hasSection,
  isForHaproxy,
  refusesConnections,
  structureOf,
} from '../../../agent/haproxy/config/listener-config.ts';
import { type HaproxyPlan, planLoadBalancer } from '../../../agent/haproxy/plan.ts';
import { MAPS } from '../../../agent/haproxy/routes/maps.ts';
import { Running } from '../../../agent/haproxy/running.ts';
import { commandText } from '../../../agent/haproxy/socket/command-text.ts';
import { type Command, isOfFrontend, isOfRow } from '../../../agent/haproxy/socket/commands.ts';
import { capabilitiesOf, parseVersion } from '../../../agent/haproxy/socket/version.ts';
import type { LoadBalancer } from '../../../agent/model/load-balancer.ts';
import { effectOf } from '../../support/haproxy/effect.ts';
import { alike, anyLoadBalancer } from '../../support/values/load-balancers.ts';
import { poolName, poolOf } from '../../support/values/routes.ts';

const KEY = 'default/web';
const SPARED = ['first', 'second'];
const OLDEST = capabilitiesOf(parseVersion('2.6.12'));

const pairs = alike(2).map(([a, b]) => [a, b] as [LoadBalancer, LoadBalancer]);

function booted(loadBalancer: LoadBalancer): Running {
  return Running.booted([loadBalancer], new AclIds().idOf);
}

function plan(
  running: Running,
  before: LoadBalancer | undefined,
  after: LoadBalancer | undefined,
): HaproxyPlan {
  return planLoadBalancer({ key: KEY, running, before, after });
}

function fold(running: Running, { commands }: HaproxyPlan): void {
  for (const command of commands) running.fold(command);
}

function namesOf({ listeners }: LoadBalancer): string[] {
  return listeners
    .filter(hasSection)
    .flatMap(backendsOf)
    .map(({ name }) => name);
}

const check = (property: fc.IPropertyWithHooks<unknown>) => () =>
  fc.assert(property, { numRuns: 300, includeErrorInReport: true });

/** All that plans are made from. */
function stateOf(running: Running) {
  const names = [...running.names()].sort();
  return {
    listeners: names.map((name) => [name, running.get(name), running.changesOf(name)]),
    certificates: running.certificates(),
    rows: MAPS.map((map) => [...running.rows.all(map)]),
    spares: SPARED.map((service) => running.spares.given(poolName(service))),
  };
}

test('A plan changes nothing: a second one is the same, and the state is as before', (t) => {
  const property = fc.property(pairs, fc.boolean(), ([a, b], isRemoved) => {
    const running = Running.booted([a, poolOf('served', ['10.0.0.1:80'])], new AclIds().idOf);
    fold(running, plan(running, a, b));
    const pools = SPARED.map((name) => poolOf(name, ['10.0.0.2:80']));
    const plans = (): readonly HaproxyPlan[] => {
      const spares = running.spares.offer();
      return [
        plan(running, a, isRemoved ? undefined : a),
        ...pools.map((each) =>
          planLoadBalancer({ key: each.key, running, before: undefined, after: each, spares }),
        ),
      ];
    };
    const before = structuredClone(stateOf(running));
    const first = plans();
    deepStrictEqual(plans(), first);
    deepStrictEqual(stateOf(running), before);
    const given = first.flatMap(({ commands }) => commands).filter(isOfRow);
    strictEqual(new Set(given.map(({ value }) => value)).size, SPARED.length);
  });
  t.notThrows(check(property));
});

test('A worker that has just booted from a load balancer needs no command but to refuse connections', (t) => {
  const property = fc.property(anyLoadBalancer, (a) => {
    const refusing = a.listeners.filter((each) => isForHaproxy(each) && refusesConnections(each));
    const commands = refusing.map(({ name }) => ({
      kind: 'DisableFrontend',
      listener: name,
      frontend: name,
    }));
    const effort = commands.length > 0 ? 'runtime' : 'none';
    const planned = plan(booted(a), a, a);
    deepStrictEqual([planned.effort, planned.commands, planned.reload], [effort, commands, undefined]);
  });
  t.notThrows(check(property));
});

test('A listener of TCP refuses connections exactly while no member is ready, whatever came before', (t) => {
  const property = fc.property(alike(4), ([first, ...others]) => {
    if (first === undefined) return;
    const running = booted(first);
    fold(running, plan(running, first, first));
    for (const next of others) {
      const { commands } = plan(running, first, next);
      fold(running, { commands } as HaproxyPlan);
      for (const listener of next.listeners.filter(isForHaproxy)) {
        const hasReady = listener.pool.members.some(({ state }) => state === 'ready');
        strictEqual(running.get(listener.name)?.isDisabled, listener.mode === 'tcp' && !hasReady);
        const own = commands.filter((each) => 'listener' in each && each.listener === listener.name);
        ok(own.filter(isOfFrontend).length <= 1);
      }
    }
  });
  t.notThrows(check(property));
});

test('A listener is enabled after its servers are ready, and disabled before they go', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const running = booted(a);
    fold(running, plan(running, a, a));
    const { commands } = plan(running, a, b);
    const added = addedBy(commands);
    for (const [at, command] of commands.entries()) {
      if (!isOfFrontend(command)) continue;
      const ofServers = (some: readonly Command[]) =>
        some.filter((each) => 'server' in each && each.backend === command.listener);
      const isGain = (each: Command): boolean => !isLoss(each, added);
      if (command.kind === 'EnableFrontend') ok(!ofServers(commands.slice(at)).some(isGain));
      else ok(ofServers(commands.slice(0, at)).every(isGain));
    }
  });
  t.notThrows(check(property));
});

test('An acknowledged plan leaves nothing to plan', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const running = booted(a);
    const first = plan(running, a, b);
    strictEqual(first.reload, undefined);
    fold(running, first);
    deepStrictEqual(plan(running, a, b).commands, []);
  });
  t.notThrows(check(property));
});

test('An acknowledged plan has the effect of booting from the file', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const running = booted(a);
    fold(running, plan(running, a, b));
    deepStrictEqual(effectOf(running, namesOf(b)), effectOf(booted(b), namesOf(b)));
  });
  t.notThrows(check(property));
});

test('A sequence of plans and deletions has the effect of the last plan', (t) => {
  const fates = fc.constantFrom('kept', 'gone', 'deleted');
  const steps = fc.tuple(alike(6), fc.array(fates, { minLength: 60, maxLength: 60 }));
  const property = fc.property(steps, ([[first, ...others], random]) => {
    if (first === undefined) return;
    const running = booted(first);
    let at = 0;
    for (const next of others) {
      fold(running, plan(running, first, next));
      for (const backend of namesOf(first)) {
        for (const [server, { state }] of running.get(backend)?.servers ?? []) {
          if (state !== 'maint' && state !== 'gone') continue;
          const fate = random[at++ % random.length];
          if (fate === 'gone') running.markGone(backend, server);
          if (fate === 'deleted') running.fold({ kind: 'DeleteServer', backend, server });
        }
      }
      deepStrictEqual(effectOf(running, namesOf(next)), effectOf(booted(next), namesOf(next)));
      deepStrictEqual(plan(running, first, next).commands, []);
    }
  });
  t.notThrows(check(property));
});

function addedBy(commands: readonly Command[]): ReadonlySet<string> {
  return new Set(
    commands.flatMap((each) => (each.kind === 'AddServer' ? [`${each.backend} ${each.server}`] : [])),
  );
}

/** Removes capacity or clients; a server that was added in the same plan had none. */
function isLoss(command: Command, added: ReadonlySet<string>): boolean {
  const kinds: readonly Command['kind'][] = [
    'DeleteCidr',
    'DeleteServer',
    'ForgetClients',
    'DisableFrontend',
  ];
  if (kinds.includes(command.kind)) return true;
  if (command.kind !== 'SetServerState' || added.has(`${command.backend} ${command.server}`)) return false;
  return command.state !== 'ready';
}

test('Additions of members and clients come before removals', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const { commands } = plan(booted(a), a, b);
    const added = addedBy(commands);
    const losses = commands.map((command) => isLoss(command, added));
    deepStrictEqual(losses, [...losses].sort());
  });
  t.notThrows(check(property));
});

test('A server is added before its other commands, and its check is enabled after it is ready', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const running = booted(a);
    const kindsOf = new Map<string, string[]>();
    for (const command of plan(running, a, b).commands) {
      if (!('server' in command)) continue;
      const name = `${command.backend} ${command.server}`;
      const isKnown = running.get(command.backend)?.servers.has(command.server) === true;
      kindsOf.set(name, [...(kindsOf.get(name) ?? (isKnown ? ['AddServer'] : [])), command.kind]);
    }
    for (const [name, kinds] of kindsOf) {
      strictEqual(kinds[0], 'AddServer', name);
      const [check, health] = kinds.slice(-2);
      const isLast = check === 'EnableHealth' && health === 'AssumeHealth';
      ok(isLast || !kinds.includes('EnableHealth'), name);
    }
  });
  t.notThrows(check(property));
});

test('A draining member gets no maintenance and no deletion before it is removed', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    const draining = new Set(
      b.listeners.flatMap(({ name, pool }) => pool.members.map((member) => `${name} ${member.name}`)),
    );
    for (const command of plan(booted(a), a, b).commands) {
      const cuts =
        command.kind === 'DeleteServer' ||
        command.kind === 'ShutdownSessions' ||
        (command.kind === 'SetServerState' && command.state === 'maint');
      ok(!cuts || !draining.has(`${command.backend} ${command.server}`), JSON.stringify(command));
    }
  });
  t.notThrows(check(property));
});

test('A plan never deletes a server and never ends sessions', (t) => {
  const property = fc.property(pairs, ([a, b]) =>
    plan(booted(a), a, b).commands.every(
      ({ kind }) => kind !== 'DeleteServer' && kind !== 'ShutdownSessions',
    ),
  );
  t.notThrows(check(property));
});

test('A plan needs a reload exactly if a structure differs', (t) => {
  const property = fc.property(anyLoadBalancer, anyLoadBalancer, (a, b) => {
    const structures = ({ listeners }: LoadBalancer) => listeners.filter(hasSection).map(structureOf).sort();
    const isSame = JSON.stringify(structures(a)) === JSON.stringify(structures(b));
    strictEqual(plan(booted(a), a, b).reload === undefined, isSame);
  });
  t.notThrows(check(property));
});

test('The worker gets new members although a reload is due', (t) => {
  const property = fc.property(anyLoadBalancer, anyLoadBalancer, (a, b) => {
    const running = booted(a);
    const both = namesOf(a).filter((name) => namesOf(b).includes(name));
    fold(running, plan(running, a, b));
    const served = (of: Running) => effectOf(of, both).map(({ serving }) => serving);
    deepStrictEqual(served(running), served(booted(b)));
  });
  t.notThrows(check(property));
});

test('A removed load balancer needs a reload if it was served, and no command', (t) => {
  const property = fc.property(anyLoadBalancer, (a) => {
    const { commands, reload } = plan(booted(a), a, undefined);
    deepStrictEqual(commands, []);
    strictEqual(reload, namesOf(a).length > 0 ? 'listener-removed' : undefined);
  });
  t.notThrows(check(property));
});

test('Every command of every plan is valid for the oldest HAProxy', (t) => {
  const property = fc.property(pairs, ([a, b]) => {
    for (const command of plan(booted(a), a, b).commands) commandText(command, OLDEST);
  });
  t.notThrows(check(property));
});
