import test from 'ava';
import { parseObject } from '../../../agent/kubernetes/parse-object.ts';
import { AUTHORITY, CRL, WEB } from '../../support/values/certificates.ts';

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const metadata = { name: 'web-tls', namespace: 'shop' };
const data = { 'tls.crt': base64(WEB.cert), 'tls.key': base64(WEB.key) };
const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', data };

/** Errors: the object has a problem. */
function parsed(json: unknown) {
  const { objects, problems } = parseObject(json, '');
  if (problems.length > 0) throw new Error(problems[0]?.message);
  return objects[0];
}

test('A Secret of type kubernetes.io/tls becomes its pair, and ca.crt its authority', (t) => {
  const object = parsed({ ...secret, data: { ...data, 'ca.crt': base64(AUTHORITY) } });
  if (object?.kind !== 'Secret') return t.fail();
  t.is(object.key, 'shop/web-tls');
  t.is(object.pair.content?.pem.reveal(), `${WEB.cert}${WEB.key}`);
  t.is(object.authority.content?.pem.reveal(), AUTHORITY);
});

test('stringData has precedence over data, as in the API server', (t) => {
  const broken = { 'tls.crt': base64('x'), 'tls.key': base64('x') };
  const object = parsed({ ...secret, data: broken, stringData: { 'tls.crt': WEB.cert, 'tls.key': WEB.key } });
  t.is(object?.kind === 'Secret' && object.pair.fault, '');
});

test('A ConfigMap with ca.crt becomes an authority', (t) => {
  const object = parsed({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'ca.crt': AUTHORITY } });
  t.is(object?.kind === 'ConfigMap' && object.authority.fault, '');
});

test('A ConfigMap or Secret with ca.crl becomes a revocation list, also without ca.crt', (t) => {
  const ofConfigMap = parsed({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'ca.crl': CRL } });
  const ofSecret = parsed({ ...secret, type: 'Opaque', data: { 'ca.crl': base64(CRL) } });
  for (const object of [ofConfigMap, ofSecret]) {
    if (object?.kind !== 'ConfigMap' && object?.kind !== 'Secret') return t.fail();
    t.is(object.crl.content?.pem.reveal(), CRL);
    t.is(object.authority.fault, 'it has no ca.crt');
  }
});

test('Secrets and ConfigMaps without certificates are ignored', (t) => {
  t.is(parsed({ ...secret, type: 'Opaque', data: { password: base64('x') } }), undefined);
  t.is(parsed({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: 'b' } }), undefined);
});

for (const [what, wrong] of [
  ['a number', { 'tls.crt': 5, 'tls.key': 5 }],
  ['a list', ['top secret']],
  ['no base64', { 'tls.crt': 'top secret', 'tls.key': 'top secret' }],
  ['nothing', undefined],
] as const)
  test(`A Secret with ${what} for its content has a fault that shows none of it`, (t) => {
    const object = parsed({ ...secret, data: wrong });
    if (object?.kind !== 'Secret') return t.fail();
    t.regex(object.pair.fault, /^(it has no )?tls\.crt( has no certificate in PEM)?$/);
  });

test('A problem of a Secret shows its name at most', (t) => {
  const { problems } = parseObject(
    { ...secret, metadata: { name: 'Web TLS' }, data: { 'tls.key': 'top secret' } },
    '',
  );
  t.is(problems.length, 1);
  t.false(JSON.stringify(problems).includes('top secret'));
});
