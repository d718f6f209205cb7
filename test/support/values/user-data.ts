// The examples of user data for cloud-init with values instead of their capital letters.

export function filledIn(text: string, values: Readonly<Record<string, string>> = {}): string {
  const all: Readonly<Record<string, string>> = {
    HOST_ADDRESS: '10.9.0.2',
    HOST_A_ADDRESS: '10.9.0.2',
    HOST_B_ADDRESS: '10.9.0.3',
    ANCHOR_ADDRESS: '10.9.0.1',
    VIP_RANGE: '10.9.1.0/28',
    INTERFACE: 'eth0',
    KUBECONFIG_IN_BASE64: Buffer.from('apiVersion: v1\nkind: Config\n').toString('base64'),
    PAIR_CREDENTIALS_IN_BASE64: Buffer.from('-----BEGIN CERTIFICATE-----\n').toString('base64'),
    ...values,
  };
  const names = Object.keys(all).join('|');
  return text.replaceAll(new RegExp(`\\b(?:${names})\\b`, 'g'), (name) => all[name] ?? '');
}
