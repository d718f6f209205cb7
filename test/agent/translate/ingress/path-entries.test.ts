import test from 'ava';
import { isGuarded } from '../../../../agent/translate/ingress/path-entries.ts';
import { ruleOf } from '../../../support/values/routes.ts';

test('A rule that answers, or asks anything of its clients, is guarded', (t) => {
  t.false(isGuarded(ruleOf('web')));
  t.true(isGuarded(ruleOf({ kind: 'answer', status: 403 })));
  const keys = { issuer: 'https://id.example.org', keys: 'secret default/keys' };
  for (const more of [{ jwt: keys }, { certificateName: 'CN=a' }, { auth: { secret: 'a' } }])
    t.true(isGuarded(ruleOf('web', more as never)), JSON.stringify(more));
});
