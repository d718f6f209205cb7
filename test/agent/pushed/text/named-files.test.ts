import test from 'ava';
import { filesInList, filesOf } from '../../../../agent/pushed/text/named-files.ts';
import { textOf } from '../../../support/octavia/pushed-texts.ts';

test('filesOf() finds what a bind, a member and an external check take', (t) => {
  const text = textOf({
    bind: '10.0.0.2:443 ssl crt-list /c/l.pem   ca-file /c/ca.pem verify required crl-file /c/crl.pem',
    backendLines: ['option external-check', 'external-check command /var/lib/octavia/ping-wrapper.sh'],
    members: [{ name: 'm1', words: 'ssl crt /c/client.pem ca-file /c/pool-ca.pem' }],
  });
  const { files, lists } = filesOf(text);
  t.deepEqual([...files].sort(), [
    '/c/ca.pem',
    '/c/client.pem',
    '/c/crl.pem',
    '/c/l.pem',
    '/c/pool-ca.pem',
    '/var/lib/octavia/ping-wrapper.sh',
  ]);
  t.deepEqual([...lists], ['/c/l.pem']);
});

test('filesInList() gives the first word of each line', (t) => {
  t.deepEqual(filesInList('/c/a.pem\n/c/b.pem [alpn h2] x.example\n\n# no\n'), ['/c/a.pem', '/c/b.pem']);
});
