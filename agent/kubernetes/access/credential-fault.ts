/** What is wrong with credentials, in words of our own: without a text of a file, a program or an identity provider. */
export class CredentialFault extends Error {}
