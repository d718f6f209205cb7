// The settings that Octavia gives an amphora in amphora-agent.conf, as a value. Pure.

import { isIP } from 'node:net';
import { HeadgateError } from '../../base/errors.ts';
import { SecretText } from '../../base/secret-text.ts';
import { listOf, type OsloConfig, readOsloConfig } from './oslo-config.ts';

/** A health manager; `host` is an address or a name. */
export interface Controller {
  readonly host: string;
  readonly port: number;
}

export interface AmphoraSettings {
  readonly amphoraId: string;
  readonly isActiveStandby: boolean;
  /** Folders that stand in the controller's texts, too. */
  readonly paths: { readonly base: string; readonly certificates: string };
  readonly haproxy: string;
  readonly rest: RestSettings;
  readonly heartbeat: HeartbeatSettings;
  /** Syslog's local0 to local7. */
  readonly logFacilities: { readonly user: number; readonly administrative: number };
}

export interface RestSettings {
  readonly address: string;
  readonly port: number;
  /** A file with certificate and key. */
  readonly certificate: string;
  /** A file with the authority of the controller's certificate. */
  readonly clientAuthority: string;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  readonly requestTimeoutMs: number;
}

export interface HeartbeatSettings {
  readonly controllers: readonly Controller[];
  readonly intervalMs: number;
  readonly key: SecretText;
}

/** `path` is for messages. Errors: SETTINGS_INVALID with every fault. */
export function readAmphoraSettings(text: string, path: string): AmphoraSettings {
  const { config, faults } = readOsloConfig(text);
  const reader = new SectionReader(config, faults);
  const haproxy = reader.section('haproxy_amphora');
  const health = reader.section('health_manager');
  const agent = reader.section('amphora_agent');
  const worker = reader.section('controller_worker');
  const base = haproxy.path('base_path', '/var/lib/octavia');
  const settings: AmphoraSettings = {
    amphoraId: agent.text('amphora_id', '', UUID, 'a UUID'),
    isActiveStandby:
      worker.text(
        'loadbalancer_topology',
        'SINGLE',
        /^(SINGLE|ACTIVE_STANDBY)$/,
        'SINGLE or ACTIVE_STANDBY',
      ) === 'ACTIVE_STANDBY',
    paths: { base, certificates: haproxy.path('base_cert_dir', '/var/lib/octavia/certs') },
    haproxy: haproxy.path('haproxy_cmd', '/usr/sbin/haproxy'),
    rest: {
      address: haproxy.address('bind_host', '::'),
      port: haproxy.number('bind_port', 9443, 0, 65_535),
      certificate: agent.path('agent_server_cert', '/etc/octavia/certs/server.pem'),
      clientAuthority: agent.path('agent_server_ca', '/etc/octavia/certs/client_ca.pem'),
      minVersion: agent.tlsVersion('agent_tls_protocol'),
      requestTimeoutMs: 1_000 * agent.number('agent_request_read_timeout', 180, 1, 86_400),
    },
    heartbeat: {
      controllers: health.controllers('controller_ip_port_list'),
      intervalMs: 1_000 * health.number('heartbeat_interval', 10, 1, 3_600),
      key: new SecretText(health.text('heartbeat_key', '', /./s, 'a key')),
    },
    logFacilities: {
      user: haproxy.number('user_log_facility', 0, 0, 7),
      administrative: haproxy.number('administrative_log_facility', 1, 0, 7),
    },
  };
  if (reader.faults.length === 0) return settings;
  throw new HeadgateError('SETTINGS_INVALID', `Cannot use "${path}": ${reader.faults.join('; ')}`, {
    retry: 'never',
  });
}

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
/** Safe without quotes in HAProxy's file. */
const PATH = /^\/[A-Za-z0-9._/@%+=-]{0,200}$/;
const HOST_NAME = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

class SectionReader {
  readonly faults: string[];
  readonly #config: OsloConfig;

  constructor(config: OsloConfig, faults: readonly string[]) {
    this.#config = config;
    this.faults = [...faults];
  }

  /** Each function reads one key, gives its default if the key is missing, and adds a fault if its value is not allowed. */
  section(name: string) {
    const values = this.#config.get(name);
    const refuse = (key: string, value: string, allowed: string): void => {
      const shown = /key/.test(key) ? 'its value' : JSON.stringify(value.slice(0, 200));
      this.faults.push(`[${name}] ${key}: ${shown} is not ${allowed}`);
    };
    const text = (key: string, otherwise: string, form: RegExp, allowed: string): string => {
      const value = values?.get(key) ?? otherwise;
      if (!form.test(value)) refuse(key, value, allowed);
      return value;
    };
    return {
      text,
      path: (key: string, otherwise: string): string => {
        const value = text(key, otherwise, PATH, 'an absolute path of letters, digits and . _ - / @ % + =');
        if (value.split('/').includes('..')) refuse(key, value, 'a path without ".."');
        return value;
      },
      number: (key: string, otherwise: number, min: number, max: number): number => {
        const value = Number(text(key, String(otherwise), /^\d{1,9}$/, `a number from ${min} to ${max}`));
        if (value < min || value > max) refuse(key, String(value), `a number from ${min} to ${max}`);
        return value;
      },
      address: (key: string, otherwise: string): string => {
        const value = values?.get(key) ?? otherwise;
        if (isIP(value) === 0) refuse(key, value, 'an IP address');
        return value;
      },
      tlsVersion: (key: string): RestSettings['minVersion'] => {
        const least = 'SSLv3, TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3';
        // Octavia allows versions that Node no longer has.
        return text(key, 'TLSv1.2', /^(SSLv3|TLSv1(\.[0-3])?)$/, least) === 'TLSv1.3' ? 'TLSv1.3' : 'TLSv1.2';
      },
      controllers: (key: string): readonly Controller[] =>
        listOf(values?.get(key) ?? '').map((item) => {
          const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(item) ?? [];
          const bare = host.replace(/^\[(.*)\]$/, '$1');
          const isHost = isIP(bare) > 0 || HOST_NAME.test(bare);
          if (!isHost || Number(port) < 1 || Number(port) > 65_535)
            refuse(key, item, 'HOST:PORT, such as 192.0.2.1:5555 or [2001:db8::1]:5555');
          return { host: bare, port: Number(port) };
        }),
    };
  }
}
