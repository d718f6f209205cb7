// Judges what clients show by the users and authorities that the agent has read: texts stay here, answers go out.

import { isPasswordOf } from '../base/crypt/password.ts';
import type { Certificates } from '../certificates/certificates.ts';
import { clientFault } from '../certificates/client-chain.ts';
import type { UserList } from '../model/load-balancer.ts';
import type { Proofs } from '../report/answers/access/proofs.ts';

export function proofsOf({ pems }: Pick<Certificates, 'pems'>): Proofs {
  const hashOf = ({ name, fingerprint }: UserList, user: string): string | undefined => {
    const lines = pems.users(name, fingerprint)?.split('\n') ?? [];
    return lines.find((line) => line.startsWith(`${user}:`))?.slice(user.length + 1);
  };
  return {
    knowsUser: (list, user) => hashOf(list, user) !== undefined,
    isPassword: (list, user, password) => {
      const hash = hashOf(list, user);
      return hash !== undefined && isPasswordOf(password, hash);
    },
    certificateFault: ({ authority, crl }, { certificates, now }) => {
      const trusted = pems.authority(authority.name, authority.fingerprint);
      const lists = crl && pems.crl(crl.name, crl.fingerprint);
      if (trusted === undefined || (crl !== undefined && lists === undefined)) return 'cannot be judged';
      return clientFault({ certificates, authority: trusted, depth: authority.depth, crl: lists, now });
    },
  };
}
