import test from 'ava';
import { isGuarded, isOpen } from '../../../agent/model/route-guards.ts';
import { ruleOf } from '../../support/values/routes.ts';

test('A rule that answers, or asks anything of its clients, is not open', (t) => {
  t.true(isOpen(ruleOf('web')));
  t.false(isOpen(ruleOf({ kind: 'answer', status: 403 })));
  const limits = { allowedCidrs: ['192.0.2.0/24'], deniedCidrs: [], requestRate: 0, bodyBytes: 0 };
  const keys = { issuer: 'https://id.example.org', keys: 'secret default/keys' };
  const all = [{ limits }, { jwt: keys }, { certificateName: 'CN=a' }, { auth: { secret: 'a' } }];
  for (const more of [...all, { externalAuth: { pool: 'pool:default:a' } }]) {
    const rule = ruleOf('web', more as never);
    t.false(isOpen(rule), JSON.stringify(more));
    t.true(isGuarded(rule), JSON.stringify(more));
  }
});
