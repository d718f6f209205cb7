import test from 'ava';
import { checkUserLines, checkUsers } from '../../../agent/certificates/users.ts';
import { HASHES, OTHER_HASHES } from '../../support/values/users.ts';

test('checkUserLines() takes the lines that htpasswd writes, with every kind of hash that HAProxy verifies', (t) => {
  const lines = Object.entries(HASHES).map(([name, hash]) => `${name}:${hash}`);
  const checked = checkUserLines(`# Of 2026\n\n${lines.join('\r\n')}\n`);
  if (typeof checked === 'string') return t.fail(checked);
  t.deepEqual(checked.faults, []);
  t.is(
    checked.pem.reveal(),
    lines
      .sort()
      .map((line) => `${line}\n`)
      .join(''),
  );
  t.is(String(checked.pem), '[secret]');
  const again = checkUserLines(checked.pem.reveal());
  t.is(typeof again === 'string' ? again : again.fingerprint, checked.fingerprint);
});

for (const [what, hash] of Object.entries(OTHER_HASHES))
  test(`A user with a hash that is ${what} is left out, by name and without the hash`, (t) => {
    const checked = checkUsers([
      ['good', HASHES.sha512],
      ['bad', hash],
    ]);
    if (typeof checked === 'string') return t.fail(checked);
    t.is(checked.pem.reveal(), `good:${HASHES.sha512}\n`);
    t.is(checked.faults.length, 1);
    t.regex(checked.faults[0] ?? '', /^HAProxy cannot verify the password of user "bad": \$2y\$ \(bcrypt\)/);
    t.false(checked.faults.join('').includes(hash));
  });

const refused: readonly (readonly [what: string, text: string, fault: RegExp])[] = [
  ['nothing', '\n# none\n', /^it has no user$/],
  ['no colon', HASHES.sha512, /^a name of a user is not 1 to 64 letters/],
  ['a name with a blank', `a b:${HASHES.sha512}`, /^a name of a user is not/],
  ['a name that ends its quotes', `a';:${HASHES.sha512}`, /^a name of a user is not/],
  ['one bad user', `bob:${OTHER_HASHES.MD5}`, /^HAProxy cannot verify the password of user "bob"/],
  [
    'many users',
    Array.from({ length: 201 }, (_, at) => `u${at}:${HASHES.sha256}`).join('\n'),
    /^it has 201 users/,
  ],
];
for (const [what, text, fault] of refused)
  test(`checkUserLines() refuses ${what}, and shows no hash`, (t) => {
    const checked = checkUserLines(text);
    t.regex(String(checked), fault);
    t.notRegex(String(checked), /abcd/);
  });

test('Of two users with one name the first counts', (t) => {
  const checked = checkUserLines(`a:${HASHES.sha256}\na:${HASHES.sha512}`);
  if (typeof checked === 'string') return t.fail(checked);
  t.is(checked.pem.reveal(), `a:${HASHES.sha256}\n`);
  t.deepEqual(checked.faults, ['user "a" is there twice']);
});
