// Which snippets of nginx restrict who is served, what members believe, or what an authorization server is asked.

import test from 'ava';
import { asksOtherwise, hasRules } from '../../../agent/protection/nginx-snippets.ts';

for (const harmless of [
  '',
  '# deny all;',
  'add_header X-A b;',
  'more_set_headers "X-Color: #1; deny all;"; # deny all;',
  "add_header X-A 'it; deny all';",
  'if ($request_method = POST) { add_header X-A b; }',
  'if ($host = a.example) { return 301 https://b.example$request_uri; }',
  'if ($http_host ~ "^www;") { return 302 https://b.example; }',
  'proxy_set_header Host $host;\nproxy_set_header X-Forwarded-Proto https;',
  'proxy_set_header Accept-Encoding "";',
  'set $a b',
  'client_max_body_size 0;',
  'client_header_buffer_size 64k;\nlarge_client_header_buffers 4 128k;',
  'proxy_set_header Upgrade $http_upgrade;\nproxy_set_header Connection "upgrade";\nproxy_max_temp_file_size 0;',
])
  test(`A snippet that restricts nothing: ${JSON.stringify(harmless)}`, (t) => {
    t.false(hasRules(harmless));
  });

for (const rule of [
  'deny all;',
  'deny all',
  'add_header X-A b;deny all;',
  'add_header X-Color "my #1"; deny all;',
  "add_header X-A '#'; return 403;",
  'return 403;',
  'return 301 https://other.example;',
  'if ($cookie_session = "") { return 302 https://login.example; }',
  'if ($host = a) { add_header X-A b; } return 302 https://b;',
  'if ($host = a) { return 403; }',
  'if ($hostile = 1) { return 302 https://b; }',
  'location /admin { add_header X-A b; }',
  'location /admin { return 302 /; }',
  'proxy_set_header X-Remote-User $remote_user;',
  'proxy_set_header "X-Tenant" a;',
  "proxy_set_header X-Real-IP '';",
  'rewrite ^/a$ /b last;',
  'client_max_body_size 1k;',
  'underscores_in_headers off;',
  'more_set_input_headers "X-User: a";',
  'access_by_lua_block { ngx.exit(403) }',
  'if ($http_x ~ "a{2}") { return 302 /; }',
])
  test(`A snippet that could restrict: ${JSON.stringify(rule)}`, (t) => {
    t.true(hasRules(rule));
  });

test('A snippet for an authorization server may only repeat what the server gets in any case', (t) => {
  for (const same of ['proxy_set_header X-Forwarded-Host $http_host;', 'add_header X-A b;'])
    t.false(asksOtherwise(same), same);
  for (const other of [
    'proxy_set_header X-Group admins;',
    'proxy_set_header X-Forwarded-Method $request_method;',
    'proxy_set_header Host other.example;',
    'proxy_method PUT;',
    'if ($request_method = POST) { return 403; }',
  ])
    t.true(asksOtherwise(other), other);
});
