import test from 'ava';
import { dashboardOf, dashboardOfOne } from '../../../../agent/report/page/dashboard-link.ts';

for (const [url, general] of [
  ['', ''],
  ['https://g.example.org/d/x', 'https://g.example.org/d/x'],
  ['https://g.example.org/d/x?a={name}', 'https://g.example.org/d/x'],
  ['https://g.example.org/d/x?a={namespace}.{name}&b=1&c=d?e', 'https://g.example.org/d/x?b=1&c=d?e'],
] as const)
  test(`The general address of ${url || 'no dashboard'}`, (t) => t.is(dashboardOf(url), general));

const URL_OF_ONE = 'https://g.example.org/d/x?a={namespace}&b={name}&c={namespace}/{name}';

for (const [key, query] of [
  ['default/web', 'a=default&b=web&c=default/web'],
  ['gateway:shop/edge', 'a=shop&b=edge&c=shop/edge'],
  ['ingress:-/edge', 'a=-&b=edge&c=-/edge'],
  [
    'a&b=c/x#"><$&{name}',
    'a=a%26b%3Dc&b=x%23%22%3E%3C%24%26%7Bname%7D&c=a%26b%3Dc/x%23%22%3E%3C%24%26%7Bname%7D',
  ],
] as const)
  test(`The address of the dashboard of ${key} has its names encoded`, (t) =>
    t.is(dashboardOfOne(URL_OF_ONE, key), `https://g.example.org/d/x?${query}`));

test('Without a placeholder there is no address for one load balancer', (t) => {
  t.is(dashboardOfOne('https://g.example.org/d/x', 'default/web'), '');
  t.is(dashboardOfOne('', 'default/web'), '');
});
