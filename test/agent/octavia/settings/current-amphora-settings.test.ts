import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CurrentAmphoraSettings } from '../../../../agent/octavia/settings/current-amphora-settings.ts';

const ID = '3f9a2c1e-8b4d-4f6a-9c0e-1d2b3a4c5d6e';
const text = (key: string, port = 9443) =>
  `[amphora_agent]\namphora_id = ${ID}\n[health_manager]\nheartbeat_key = ${key}\n[haproxy_amphora]\nbind_port = ${port}\n`;

function start(t: ExecutionContext) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-amphora-settings-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'amphora-agent.conf');
  writeFileSync(path, text('one'));
  return { path, settings: new CurrentAmphoraSettings(path) };
}

test('CurrentAmphoraSettings uses and stores a new text, and keeps where the API listens', async (t) => {
  const { path, settings } = start(t);
  await settings.replace(text('two', 9444));
  t.is(settings.now.heartbeat.key.reveal(), 'two');
  t.is(settings.now.rest.port, 9443);
  t.is(readFileSync(path, 'utf8'), text('two', 9444));
  t.is(statSync(path).mode & 0o777, 0o600);
});

test('CurrentAmphoraSettings keeps the old settings and the file if a new text is invalid', async (t) => {
  const { path, settings } = start(t);
  await t.throwsAsync(settings.replace('[health_manager]'), { code: 'SETTINGS_INVALID' });
  t.is(settings.now.heartbeat.key.reveal(), 'one');
  t.is(readFileSync(path, 'utf8'), text('one'));
});

test('CurrentAmphoraSettings reads its file again', (t) => {
  const { path, settings } = start(t);
  writeFileSync(path, text('three'));
  settings.reread();
  t.is(settings.now.heartbeat.key.reveal(), 'three');
  rmSync(path);
  t.throws(() => settings.reread(), { code: 'FILE_READ' });
  t.is(settings.now.heartbeat.key.reveal(), 'three');
  writeFileSync(path, text('three'));
});
