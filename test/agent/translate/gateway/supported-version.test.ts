import test from 'ava';
import { supportedVersion } from '../../../../agent/translate/gateway/supported-version.ts';

const name = (plural: string) => `${plural}.gateway.networking.k8s.io`;

test('supportedVersion() is True for definitions of 1.6, whatever their patch', (t) => {
  t.like(supportedVersion({ [name('gateways')]: 'v1.6.0', [name('httproutes')]: 'v1.6.3' }), {
    type: 'SupportedVersion',
    status: 'True',
    reason: 'SupportedVersion',
  });
});

for (const version of ['', 'v1.2.0', 'v1.4.1', 'v1.60.0', 'v1.7.0', 'v1.6.0-rc.1', 'v1.6', 'x'])
  test(`supportedVersion() is False if a definition has version "${version}"`, (t) => {
    const found = supportedVersion({ [name('gateways')]: 'v1.6.3', [name('tcproutes')]: version });
    t.like(found, { type: 'SupportedVersion', status: 'False', reason: 'UnsupportedVersion' });
    const shown = version === '' ? 'without a version' : `"${version}"`;
    t.true(found.message.startsWith(`Definitions of Gateway API are ${shown} (tcproutes), and v1.6 `));
  });
