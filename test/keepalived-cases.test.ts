// Golden cases: keepalived-cases/*.txt hold a setting and VIPs, and the keepalived.conf that they become.
// Each file is also shown to the real keepalived, on a host that has the interface.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ava from 'ava';
import { parseYamlDocuments } from '../agent/base/yaml.ts';
import { vrrp } from '../agent/settings/vrrp.ts';
import { renderKeepalived } from '../agent/vips/keepalived/files/render.ts';
import { keepalivedPaths } from '../agent/vips/keepalived/paths.ts';
import { checkConfig } from '../agent/vips/keepalived/process/process.ts';
import { requires } from './support/basics/requirements.ts';
import { TestNetwork } from './support/host/namespaces.ts';
import { type CaseFile, isUpdating, readCases, writeCase } from './support/values/case-file.ts';
import { keepalivedExecutable } from './support/vrrp/keepalived.ts';

const withKeepalived = requires(ava, { root: true, programs: ['keepalived', 'ip', 'nsenter', 'sysctl'] });

const cases = readCases(new URL('keepalived-cases/', import.meta.url));
const PATHS = keepalivedPaths('/var/lib/headgate', '/run/headgate');

function rendered(given: string, paths = PATHS): string {
  const [document] = parseYamlDocuments(given).documents;
  if (document === undefined) throw new Error('The case is empty');
  const { setting, vips } = document.value as unknown as {
    readonly setting: unknown;
    readonly vips: readonly string[] | null;
  };
  const reading = vrrp().read(setting, '/');
  if (!('value' in reading) || reading.value === undefined)
    throw new Error(`Not a setting: ${JSON.stringify(reading)}`);
  return renderKeepalived(reading.value, paths, vips ?? []);
}

const golden = ava.macro(async (t, file: CaseFile) => {
  const [given = '', expected = ''] = file.parts;
  if (isUpdating) await writeCase(file, [given, rendered(given)]);
  t.is(rendered(given), isUpdating ? rendered(given) : expected);
});

for (const file of cases) ava(`Case: ${file.title}`, golden, file);

withKeepalived('keepalived takes the file of every case', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-case-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const network = await TestNetwork.create(t, ['host']);
  const path = join(folder, 'keepalived.conf');
  const paths = keepalivedPaths(folder, folder);
  await mkdir(paths.directory);
  await writeFile(paths.standing, '0\n');
  for (const { title, parts } of cases) {
    await writeFile(path, rendered(parts[0] ?? '', paths));
    t.is(await checkConfig(keepalivedExecutable, network.netns('host'), path), '', title);
  }
});
