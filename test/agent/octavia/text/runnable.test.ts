import test from 'ava';
import { runnable } from '../../../../agent/octavia/text/runnable.ts';

test('runnable() removes groups and http-use-htx, and nothing else', (t) => {
  const text =
    'global\n    user nobody\n    group nogroup\nfrontend a\n    option http-use-htx\n    acl group path /\n    bind :80\n';
  t.is(runnable(text), 'global\n    user nobody\nfrontend a\n    acl group path /\n    bind :80\n');
  t.is(runnable('global\n    group x'), 'global\n');
});
