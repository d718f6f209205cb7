import test from 'ava';
import { isPasswordOf } from '../../../../agent/base/crypt/password.ts';
import { piWords } from '../../../../agent/base/crypt/pi-words.ts';
import { HASHES, OTHER_HASHES } from '../../../support/values/users.ts';

for (const [kind, hash] of Object.entries(HASHES))
  test(`A hash of ${kind} is that of its password, and of no other`, (t) => {
    t.true(isPasswordOf('open', hash));
    for (const other of ['', 'opem', 'open ', 'open\0']) t.false(isPasswordOf(other, hash), other);
  });

/** By crypt(3): passwords of every length that its kinds treat in another way. */
const OF_CRYPT = [
  ['', '$2y$04$abcdefghijklmnopqrstuubyCG3zY1GIXMyxfivm.ClDiInHzxjiq'],
  ['', '$5$rounds=1000$s$cdjvTno7yp4OJ1Yyxn95LrCQTyxHsv3TK6lXb48P4L1'],
  [
    '',
    '$6$rounds=1001$0123456789abcdef$.hVA5UF88nIIMTfxmUPnm5Gp/6G806GCWtHDBDgBqOgaXV/HDE/p.Z8fpdEzpDdpjuI1DA9Jq6FMU4zA/ymWk.',
  ],
  ['x', '$2y$04$abcdefghijklmnopqrstuuPp7HPfoAs8I2dCQCQ/fW7zEJv8I8C8e'],
  ['x', '$5$rounds=1000$s$eeQSk6gfU9BRZYJReoVWuVaNAzKa371bg9tNLHdX.v7'],
  [
    'x',
    '$6$rounds=1001$0123456789abcdef$hoflpURy7yJ5.jxlnbpv.5N2ISZuSEjXYddGlVhiwGJSX7FwX5V1MaUd6846NEsk5khqek4KnBzoV1FJtVi8Q0',
  ],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$2y$04$abcdefghijklmnopqrstuuillpif0AmqMbDWE0Xgw3IRQZ8o..IQG'],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$5$rounds=1000$s$UV.87vXW4/kvVnPGvHpebxBcjL5eyLHMGZQONbNJfE0'],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$.WipBK1Unhi6GwAUPNYSrMntYERPtQSj3IQciv6sqkT9ftLhQSNCqKMry30mxyaqh7FuOS42MlHsi9FWvXYl21',
  ],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$2y$04$abcdefghijklmnopqrstuuG1.CAsU8uKw9cllhfnU41Ybj8zucgPq'],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$5$rounds=1000$s$6FXzQleDqhdTAWBtlwbZCjJPlh276m2vhrltbmTSsB0'],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$vVUj1wj2mPUwAsFHWKS0dYfVIw5lF6peB/XH2LE2N59dEZMs3BwxMDC9tBaitccktrfirjdZthloNb92vUTRM1',
  ],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$2y$04$abcdefghijklmnopqrstuu/fqOuCS54whBxX40B6MGKWKgk9Q2QOe'],
  ['xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx', '$5$rounds=1000$s$YmCxo989T0DRSwlmUN4tfzxWJTlcLwJbM/kp5WXVwr0'],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$xDgYfu0c/Iw5LAvaJH1wg6AaJu.24PeUjgBkTUhshd1vg3LvLOsqLL0ujO/DupfLcXcVac6QvmG7yFMDQbfPt.',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$2y$04$abcdefghijklmnopqrstuuI/zbVz7rMQrNxQD2FUlNoUjOA96U/ge',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$5$rounds=1000$s$KIt7xq80LRDWx/Lea5BsoTm2hbJA9SSKnJmieEQPbl4',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$D93lzomOrBLIXyMLTqCOSj3eaexLwf8a9cPDHqaLRwCEuJuZeKJGYmTcYEEy2xdk67uIjXjPXFkG.1XvklRyj0',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$2y$04$abcdefghijklmnopqrstuuioDjkgVzVMqo4ARgk1ehwGISblvPHrC',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$5$rounds=1000$s$pbpxUPP9mi3xjTpso5g8OGL/nNqGVLDONuVTO80emM4',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$SyYnbhyyA/Gef.bU1yO0xPVjlUZvFqzrIQkgppuOxx5vEwQZ3zAfBK.C7.pIK6tllJuQbDkQ8DeqcCVXCsBUR1',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$2y$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$5$rounds=1000$s$69vl3pKiQxYQhD2unOKmhWcRX8mu.VLv2ShJrleH9n.',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$7zzDVWrUIbGhHp6pRI7a62QEK9E3u6D8iimXqkgsYY/UWsplRKOvlSMNSYP3nyCftdEP3gCPXRS5hLkepaT6X0',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$2y$04$abcdefghijklmnopqrstuubzadhGtS2zEF.gu0yd0opP6cVzb.e0i',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$5$rounds=1000$s$NlCK50k7OncWf1kn1y7EWAVq5hkp9Lq/HZBylvx2v62',
  ],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '$6$rounds=1001$0123456789abcdef$Lz4Wz.ciwZlssfX/sBcFNPzyPo0ohVKIqwAPzlw8CickMyffji7oROeCwRczI6WgwdLr3cQTtpKsG1lXRFZxH1',
  ],
  ['pässwörd ✓', '$2y$04$abcdefghijklmnopqrstuuESmz2KlYgnhSMqAh8U2JHaWhc4kF.6a'],
  ['pässwörd ✓', '$5$rounds=1000$s$1yvK6ZNB6D2HjnbTICJ/65QsrKs6yO.x9tFnwV3icL2'],
  [
    'pässwörd ✓',
    '$6$rounds=1001$0123456789abcdef$O6i5av.8YrjS9E9QD/bl1qMWI4rDIcDZnrsMM0wl0E5f/A/TAq/L8KdX0OTmjrYmd/R579hFWXu8bzqlmne4k1',
  ],
] as const;

test('Passwords of any length and alphabet are verified as crypt(3) does', (t) => {
  for (const [password, hash] of OF_CRYPT) t.true(isPasswordOf(password, hash), `${password.length} ${hash}`);
});

test('A hash that HAProxy must not be given is that of no password', (t) => {
  for (const kind of ['MD5 of Apache', 'MD5', 'SHA-1', 'plain text', 'a quote'] as const)
    t.false(isPasswordOf('open', OTHER_HASHES[kind]), kind);
});

test('The words of pi are those that Blowfish begins with', (t) => {
  t.deepEqual(
    [...piWords(3)].map((word) => (word >>> 0).toString(16)),
    ['243f6a88', '85a308d3', '13198a2e'],
  );
});
