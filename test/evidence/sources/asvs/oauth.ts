import type { Source } from '../../requirement.ts'

/** V10: resource server and authorization server. */
export const OAUTH: Source['requirements'] = {
  '10.1.1': {
    says: 'L2: Tokens reach only the parts that need them.',
    status: 'met',
    promises: ['C9', 'C22', 'H170', 'H188', 'H132'],
  },
  '10.3.1': {
    says: 'L2: A resource server accepts only tokens that were issued for it.',
    status: 'met if configured',
    promises: ['C10'],
    keys: ['enforce', 'public_paths', 'store.prefix'],
    vendor: 'Give no two devices that share a store the same `store.prefix`.',
  },
  '10.3.2': {
    says: 'L2: The rights that a token carries are a part of each decision.',
    status: 'met if configured',
    promises: ['H193', 'H196'],
    keys: ['passwords.enforce', 'enforce', 'public_paths'],
  },
  '10.3.3': {
    says: 'L2: The user of a token is known by something that nobody else can have later.',
    status: 'contributes',
    promises: ['H194', 'H197', 'H274'],
    reason:
      'A token belongs to a login, and names the entry of `passwords` that it was made with; it ends when that entry is removed. An operator can give the name to another person later.',
    vendor: 'Give a name of `passwords` to one person or program only.',
  },
  '10.3.5': {
    says: 'L3: A stolen token is useless, because the sender has to prove that it holds a key.',
    status: 'not met',
    reason:
      'Tokens of the device API are bearer tokens. Their lifetime, revocation and rights bound what a thief can do.',
    promises: ['C7', 'C8', 'H193'],
  },
  '10.4.4': {
    says: 'L1: A client can use only the grants that it needs, and nobody the password grant or the implicit one.',
    status: 'not met',
    reason: 'The device API has the password grant and no other. There is no implicit grant.',
    promises: ['C3', 'C5'],
  },
  '10.4.5': {
    says: 'L1: A stolen refresh token of a public client is found out when it is used again, for levels 1 and 2 by rotation.',
    status: 'met if configured',
    promises: ['C6', 'H33'],
    keys: ['tokens.rotate_refresh', 'tokens.refresh_grace'],
    vendor: 'Level 3 wants refresh tokens that are bound to a key, which Postern does not have.',
  },
  '10.4.8': {
    says: 'L2: A refresh token ends at a fixed time, also if each use prolongs it.',
    status: 'met if configured',
    promises: ['C6', 'C7', 'H311'],
    keys: ['tokens.grant_lifetime'],
  },
  '10.4.9': {
    says: 'L2: An authorized user can revoke refresh and access tokens on a page of the server.',
    status: 'contributes',
    promises: ['H153', 'H159', 'H222'],
    keys: ['admin.password_file'],
    reason:
      'The live page does it for the operator. There is none with `admin.address: off`, and over TCP it revokes only with a password of its own.',
    vendor: 'Give the password of the live page to those who may revoke.',
  },
  '10.4.10': {
    says: 'L2: A client that can keep a secret has to prove who it is when it asks for a token or revokes one.',
    status: 'not met',
    reason: 'The device API knows no clients. Client credentials are accepted and ignored.',
    promises: ['C3'],
  },
  '10.4.11': {
    says: 'L2: A client gets only the rights that it needs.',
    status: 'contributes',
    promises: ['H193', 'H292', 'H300'],
    keys: ['passwords'],
    reason:
      'A name has the rights of its `allow`. Whether it needs them, its operator has to know; `propose` helps.',
    vendor: 'Give each purpose a password of its own with the shortest `allow`.',
  },
  '10.4.14': {
    says: 'L3: Only access tokens that are bound to a key of their client are issued.',
    status: 'not met',
    reason: 'Tokens of the device API are bearer tokens.',
  },
  '10.4.16': {
    says: 'L3: Every client proves who it is by a key.',
    status: 'not met',
    reason: 'The device API knows no clients.',
    promises: ['C3'],
  },
}
