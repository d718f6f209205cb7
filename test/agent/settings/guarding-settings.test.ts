// Settings that protect: with a wrong value the agent does not start, and a reload keeps what is in force and tells.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { Log } from '../../../agent/host/log.ts';
import { SETTINGS_THAT_PROTECT } from '../../../agent/protection/protections.ts';
import { CurrentSettings } from '../../../agent/settings/current-settings.ts';
import { readSettings, type SettingName, type Settings } from '../../../agent/settings/settings.ts';
import { allSettings, variableOf } from '../../../agent/settings/table.ts';
import { silentLog } from '../../support/values/silent-log.ts';

interface Case {
  /** In force at the start. */
  readonly good: string;
  readonly wrong: readonly string[];
}

const CASES: Readonly<Partial<Record<SettingName, Case>>> = {
  hostsOfOneNamespace: {
    good: 'hostsOfOneNamespace: true',
    wrong: [
      'hostsOfOneNamespace: ture',
      'hostsOfOneNamespace: [true]',
      'hostOfOneNamespace: true',
      'hostsofonenamespace: true',
    ],
  },
  enforceNetworkPolicy: {
    good: 'enforceNetworkPolicy: ingress',
    wrong: [
      'enforceNetworkPolicy: true',
      'enforceNetworkPolicy: Ingress',
      'enforceNetworkPolicy: [ingress]',
      'enforceNetworkPolicies: ingress',
    ],
  },
  maxRsaBits: {
    good: 'maxRsaBits: 2048',
    wrong: ['maxRsaBits: 1024', 'maxRsaBits: 32768', 'maxRsaBits: many', 'maxRSABits: 2048'],
  },
  dotSegments: {
    good: 'dotSegments: normalize',
    wrong: ['dotSegments: rejct', 'dotSegments: true', 'dotSegments: [reject]', 'dotSegment: reject'],
  },
  ambiguousPaths: {
    good: 'ambiguousPaths: reject',
    wrong: ['ambiguousPaths: reject-guarded', 'ambiguousPaths: Reject', 'ambigousPaths: reject'],
  },
  defaults: {
    good: 'defaults: { tls-min-version: "1.3", trusted-proxies: 192.0.2.1, rate-limit: "10" }',
    wrong: [
      'defaults: { tls-min-version: "1.1" }',
      'defaults: { tls-min-versions: "1.3" }',
      'defaults: { tls-ciphers: "NONE:$" }',
      'defaults: { trusted-proxies: 192.0.2.0/33 }',
      'defaults: { trusted-proxies: "192.0.2.1,proxy" }',
      'defaults: { rate-limit: many }',
      'defaults: { connection-limit: -1 }',
      'defaults: tls-min-version',
    ],
  },
  refusedMembers: {
    good: 'refusedMembers: [192.0.2.0/24]',
    wrong: [
      'refusedMembers: [192.0.2.0/33]',
      'refusedMembers: [192.0.2.0/24, pods]',
      'refusedMember: [192.0.2.0/24]',
    ],
  },
  memberRanges: {
    good: 'memberRanges: [192.0.2.0/24]',
    wrong: ['memberRanges: [192.0.2]', 'memberRanges: { from: 192.0.2.1 }', 'memberRange: [192.0.2.0/24]'],
  },
  membersWithoutTarget: {
    good: 'membersWithoutTarget: false',
    wrong: ['membersWithoutTarget: off-please', 'memberWithoutTarget: false'],
  },
};

test('Every setting that protects is a setting, and is tried here', (t) => {
  const names = allSettings().map(([name]) => String(name));
  for (const { name } of SETTINGS_THAT_PROTECT) {
    t.true(names.includes(name), name);
    t.true(name in CASES, name);
  }
});

/** Settings from a file of their own. */
function fileOf(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-settings-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'headgate.yaml');
  return {
    write: (text: string) => writeFileSync(path, text),
    start: () => new CurrentSettings(['--config', path], () => undefined),
  };
}

for (const [name, { good, wrong: given }] of Object.entries(CASES) as [SettingName, Case][]) {
  const wrong = [...given, `${name}:`, `${name}: ~`, `${name}: # true`];

  test(`The agent does not start with a wrong ${name}`, (t) => {
    const file = fileOf(t);
    for (const text of wrong) {
      file.write(text);
      const error = t.throws(() => file.start(), { code: 'SETTINGS_INVALID' }, text);
      t.true(error?.message.includes(text.split(':', 1)[0] ?? ''), text);
    }
  });

  test(`A reload with a wrong ${name} keeps the one in force, and tells`, (t) => {
    const file = fileOf(t);
    file.write(good);
    const settings = file.start();
    const before: Settings = settings.now;
    const { translating } = settings;
    for (const text of wrong) {
      const told: unknown[] = [];
      const log: Log = { ...silentLog(), error: (message, fields) => told.push([message, fields]) };
      // With another setting that is good: nothing of the file counts.
      file.write(`${text}\nthreads: 3\n`);
      t.false(settings.reread(log), text);
      t.is(settings.now, before, text);
      t.is(settings.translating, translating, text);
      t.is(told.length, 1, text);
      t.true(JSON.stringify(told).includes(text.split(':', 1)[0] ?? ''), text);
    }
    t.notDeepEqual(before[name], allSettings().find(([each]) => each === name)?.[1].default);
  });

  test(`A variable without a value is no ${name}`, (t) => {
    const read = (value: string): Settings =>
      readSettings({ argv: [], env: { [variableOf(name)]: value }, readFile: () => '' });
    for (const value of ['', ' ', ',', ';']) {
      const error = t.throws(() => read(value), { code: 'SETTINGS_INVALID' }, value);
      t.regex(
        error?.message ?? '',
        new RegExp(`${variableOf(name)}: A value is missing, and this setting protects`),
      );
    }
  });
}
