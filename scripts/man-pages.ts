// The manual pages headgate(8) and headgate.yaml(5), built from the usage texts and the table of settings. Pure.

import { commands, exitStatus } from '../agent/cli/cli.ts';
import { defaultInWords, flagExample, plain } from '../agent/settings/help.ts';
import { allSettings, groups, type Setting, variableOf } from '../agent/settings/table.ts';
import { changeInWords } from './settings-page.ts';

export interface ManualDate {
  readonly version: string;
  /** Such as `2026-11-20`. */
  readonly date: string;
}

/** headgate(8) in roff. */
export function commandPage({ version, date }: ManualDate): string {
  return page(
    title('HEADGATE', 8, version, date),
    section('NAME', text('headgate - load-balancer agent for Kubernetes Services')),
    section(
      'SYNOPSIS',
      ...commands.flatMap(({ usage }) => [`.B headgate`, text(usage), '.br']),
      '.B headgate',
      text('help | version'),
    ),
    section(
      'DESCRIPTION',
      text(
        'Reads Services and EndpointSlices from a Kubernetes cluster or from folders of manifests, and keeps HAProxy and keepalived in exactly the state that these objects describe.',
      ),
      '.PP',
      text(
        'HAProxy and keepalived run in their own units, so stopping, killing or upgrading the agent does not affect traffic.',
      ),
    ),
    section('COMMANDS', ...commands.flatMap(({ usage, purpose }) => entry(usage, [purpose]))),
    section(
      'OPTIONS',
      text('The flags are described in'),
      '.BR headgate.yaml (5).',
      ...allSettings().map(
        ([name, setting]) => `.TP\n.B ${escaped(`--${flag(name, setting)}`)}\n${text(summary(setting.doc))}`,
      ),
      ...entry('--config FILE', ['The settings file.']),
    ),
    section(
      'ENVIRONMENT',
      ...entry('HEADGATE_CONFIG', ['The settings file, like --config.']),
      ...entry('HEADGATE_STATE_DIR, HEADGATE_LISTEN and so on', [
        'Every setting has a variable, see headgate.yaml(5). Flags have precedence.',
      ]),
    ),
    section(
      'EXIT STATUS',
      ...Object.entries(exitStatus).flatMap(([status, means]) => entry(status, [means])),
    ),
    section(
      'SIGNALS',
      ...entry('SIGTERM, SIGINT', ['The agent ends; traffic continues.']),
      ...entry('SIGHUP', ['The agent reads its settings again and logs the differences.']),
    ),
    section(
      'FILES',
      ...entry('/etc/headgate/headgate.yaml', ['The settings of headgate.service.']),
      ...entry('/etc/credstore/headgate.kubeconfig', ['Optional credentials for the cluster.']),
      ...entry('/etc/credstore/headgate.pair', ['Optional credentials of the pair.']),
      ...entry('/var/lib/headgate', ['The last good state, which a host serves after a reboot.']),
      ...entry('/run/headgate', ['Sockets and process ids.']),
    ),
    section(
      'UNITS',
      ...entry('headgate.service', ['The agent.']),
      ...entry('headgate-haproxy.service', ['HAProxy.']),
      ...entry('headgate-keepalived.service', ['keepalived, on hosts that hold VIPs by VRRP.']),
      ...entry('headgate-rules.service', ['the rules of nftables, on hosts that forward UDP or SCTP.']),
      ...entry('headgate@NAME.service, headgate-haproxy@NAME.service, headgate-keepalived@NAME.service', [
        'The same units for a load balancer in the network namespace NAME with the settings /etc/headgate/NAME.yaml.',
      ]),
    ),
    section('SEE ALSO', '.BR headgate.yaml (5),', '.BR haproxy (1),', '.BR keepalived (8)'),
  );
}

/** headgate.yaml(5) in roff. */
export function settingsPage({ version, date }: ManualDate): string {
  return page(
    title('HEADGATE.YAML', 5, version, date),
    section('NAME', text('headgate.yaml - settings of the load-balancer agent headgate')),
    section(
      'DESCRIPTION',
      text(
        'A YAML file with one mapping. Each key also has a flag and an environment variable: a flag has precedence over a variable, and a variable over the file. An unknown key or a value that is not allowed is an error; the agent lists all errors at once.',
      ),
      '.PP',
      text(
        'Relative paths start from the directory of the file. On SIGHUP the agent reads the file again and logs each change, and the changes that need a restart.',
      ),
    ),
    ...groups.map((group) =>
      section(
        group.toUpperCase(),
        ...allSettings()
          .filter(([, setting]) => setting.group === group)
          .flatMap(([name, setting]) => entry(name, paragraphs(name, setting))),
      ),
    ),
    section('SEE ALSO', '.BR headgate (8)'),
  );
}

function paragraphs(name: string, setting: Setting<unknown>): readonly string[] {
  return [
    plain(setting.doc),
    `Allowed: ${plain(setting.kind.allowed)}. Default: ${plain(defaultInWords(setting))}. Flag --${flag(name, setting)}, variable ${variableOf(name)}. ${changeInWords(setting)}.`,
  ];
}

function flag(name: string, setting: Setting<unknown>): string {
  return flagExample(name, setting).replace(/^--/, '');
}

function summary(doc: string): string {
  return plain(doc.split(/(?<=\.) /)[0] ?? '');
}

function page(...parts: readonly string[]): string {
  return `${parts.join('\n')}\n`;
}

function title(name: string, number: number, version: string, date: string): string {
  return `.TH ${name} ${number} ${date} "headgate ${version}" "Headgate"`;
}

function section(name: string, ...lines: readonly string[]): string {
  return [`.SH ${/\s/.test(name) ? `"${name}"` : name}`, ...lines].join('\n');
}

function entry(tag: string, paragraphs: readonly string[]): readonly string[] {
  const [first = '', ...more] = paragraphs;
  return ['.TP', `.B ${escaped(tag)}`, text(first), ...more.flatMap((each) => ['.IP', text(each)])];
}

/** A line that roff reads as text, even if it begins like a request. */
function text(words: string): string {
  return escaped(words).replace(/^(?=[.'])/, '\\&');
}

function escaped(words: string): string {
  return words.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('’', "'");
}
