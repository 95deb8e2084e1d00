import type { Source } from '../requirement.ts'

/** OAuth security. Postern is authorization server and reverse proxy at once; the device is the resource. */
export const RFC_9700: Source = {
  name: 'RFC 9700',
  title: 'Best Current Practice for OAuth 2.0 Security',
  version:
    'January 2025, BCP 240: each clause with MUST, SHOULD or RECOMMENDED that concerns an authorization server or a resource server. A number behind the hyphen is the paragraph of the section, as the anchors of the HTML edition count.',
  readAt:
    'https://www.rfc-editor.org/rfc/rfc9700.txt, in the copy that the GitHub repository pomerium/pomerium keeps as .docs/RFC/rfc9700.txt',
  leftOut: {
    '2.1-1, 2.6-6 and 4.1':
      'Postern has no authorization endpoint, so no client registers a URI to be redirected to.',
    '2.1.1, 4.5, 4.7 and 4.8':
      'Postern issues no authorization codes, so there is nothing that PKCE could protect.',
    '2.1.2 and 4.6': 'Postern issues no token in a redirect: there is no implicit grant.',
    '2.6-7 and 4.17': 'Postern sends no response by messages between windows of a browser.',
    '2.6-8': 'The clause forbids CORS at an authorization endpoint only.',
    '4.2 and 4.3.1':
      'No URL of Postern carries a code, a state or a token that `Referer` or a history could show.',
    '2.1-3 to 2.1-6, 4.4 and 4.11.1': 'The clauses address clients.',
    '4.11.2':
      'The clause is about redirects to the URI of a client. Redirects of Postern itself are in 2.1-2.',
    '4.14.2-3 and 4.14.2-5':
      'There are no confidential clients (2.5-1), and a refresh token encodes nothing. 4.14.2-4 has the methods of -5.',
  },
  requirements: {
    '2.1-2': {
      says: 'No URL of the server leads a browser to an address that a parameter chooses.',
      status: 'met',
      promises: ['H190', 'H189', 'H152'],
      vendor: "Look for such URLs among the device's own pages.",
    },
    '2.1-7': {
      says: 'A redirect after a login does not pass the password on to another site.',
      status: 'met',
      promises: ['H190', 'H188', 'H152'],
    },
    '2.2.1': {
      says: 'Access tokens should work only for the client that proves to hold a key.',
      status: 'not met',
      reason:
        'The device API has bearer tokens, and its clients can prove no key. What bounds a stolen token is its lifetime, its revocation and the rights of its name.',
      promises: ['C7', 'C8', 'H193'],
    },
    '2.2.2': {
      says: 'The refresh token of a public client must be bound to its sender, or change with each use.',
      status: 'not met',
      reason:
        'By default the refresh token of a login stays the same, because the documented API of the devices has no other one. `tokens.rotate_refresh: true` changes it with each use: 4.14.2-4.',
      promises: ['C6', 'H33'],
      vendor: 'Switch rotation on for clients that store the refresh token of each response.',
    },
    '2.3-1': {
      says: 'An access token should have no more rights than its client needs.',
      status: 'contributes',
      promises: ['H193', 'H292', 'H300'],
      keys: ['passwords'],
      reason:
        'A login without `allow` may do everything. Postern holds a login to its list, and proposes one from the log, but does not know what the client needs.',
      vendor: 'Give each purpose a password of its own with the shortest `allow`.',
    },
    '2.3-2': {
      says: 'An access token should be valid at one resource server, which refuses tokens for others.',
      status: 'met if configured',
      promises: ['C10'],
      keys: ['enforce', 'public_paths', 'store.prefix'],
      vendor: 'Give no two devices that share a store the same `store.prefix`.',
    },
    '2.3-3': {
      says: 'An access token should be good for certain actions on certain resources, which the server checks with each request.',
      status: 'met if configured',
      promises: ['H193', 'H196', 'H203', 'H204'],
      keys: ['passwords', 'passwords.enforce', 'enforce', 'public_paths'],
    },
    '2.4': {
      says: 'The password grant must not be used.',
      status: 'not met',
      reason:
        'The documented API of the devices has no other grant, and the device knows one password. The client sees that password.',
      promises: ['C3'],
      vendor: 'Give programs that cannot keep a password a token of `postern issue`.',
    },
    '2.5-1': {
      says: 'The server should authenticate clients where credentials can be issued to them and kept secret.',
      status: 'not met',
      reason: 'The device API knows no clients. Client credentials are accepted and ignored.',
      promises: ['C3'],
      vendor: 'Put a proxy that asks for client certificates in front, if only known machines may log in.',
    },
    '2.5-2': {
      says: 'Clients should authenticate by asymmetric keys.',
      status: 'not met',
      reason: 'Postern authenticates no client: 2.5-1.',
    },
    '2.6-3': {
      says: 'The server should publish its metadata in the form of RFC 8414.',
      status: 'not met',
      reason: 'The device API fixes one path and two grants, and every other path belongs to the device.',
      promises: ['C1'],
    },
    '2.6-4': {
      says: 'A client should not be able to choose an identity that could be taken for that of a user.',
      status: 'met',
      promises: ['H197', 'H308'],
    },
    '2.6-5': {
      says: 'TLS should reach from the client to the resource server without an end in between.',
      status: 'not met',
      reason:
        'Postern must read each request, so it is the end of the client’s TLS. 4.13 has what then holds.',
      promises: ['H217', 'H353'],
    },
    '3-5': {
      says: 'Whoever deploys OAuth must consider every attacker that this environment has.',
      status: "vendor's task",
      vendor:
        'Write down who can reach the device, its network and its clients. SECURITY.md says whom Postern trusts with what.',
    },
    '4.3.2': {
      says: 'Clients must not put an access token into the query of a URL.',
      status: 'contributes',
      promises: ['H36'],
      reason:
        'What a client sends is its own matter. Postern reads no token there, so such a client does not work.',
      vendor: 'Have your client programs send the token in `Authorization` only.',
    },
    '4.9.3-2.1': {
      says: 'Sender-constrained tokens should keep a stolen token from being used at another server.',
      status: 'not met',
      reason: 'Tokens are bearer tokens: 2.2.1.',
    },
    '4.9.3-2.2': {
      says: 'A token that was stolen at one server should be void at all others.',
      status: 'met if configured',
      promises: ['C10'],
      keys: ['enforce', 'public_paths', 'store.prefix'],
      vendor: 'Give no two devices that share a store the same `store.prefix`.',
    },
    '4.9.3-2.3': {
      says: 'A resource server must neither store nor send access tokens in plain text.',
      status: 'contributes',
      promises: ['C9', 'C22', 'H81', 'H115', 'H132'],
      keys: ['listen.tls'],
      reason:
        'Disk, log and shared store have digests, and the device gets no token. In memory the sessions of browsers, and the latest heads of open connections, have tokens in plain text.',
      vendor: 'Allow no core dumps and no swap without encryption on the machine.',
    },
    '4.10': {
      says: 'Access tokens should be bound to their sender and to one resource server.',
      status: 'not met',
      reason: 'They are bound to one server (2.3-2), and to no sender (2.2.1).',
      promises: ['C10'],
    },
    '4.12-6': {
      says: 'A redirect of a request with a password must not use the status 307, and should use 303.',
      status: 'met',
      promises: ['H190', 'H188', 'H152'],
    },
    '4.13-5': {
      says: 'A reverse proxy must clean each request of values that only the proxy may set for the server behind it.',
      status: 'contributes',
      promises: ['C22', 'H15', 'H16', 'H17', 'H18', 'H197', 'H202', 'H203'],
      keys: ['listen.trusted_proxies'],
      reason:
        'The standard fields and those of the configuration are cleaned in every spelling. A firmware that trusts another field, such as `Client-IP`, is known to its maker only.',
      vendor: 'Name each further field that the firmware trusts in `upstream.drop`.',
    },
    '4.13-6': {
      says: 'The way from the proxy to the server behind it must be safe from listeners and from changed or repeated messages.',
      status: 'contributes',
      promises: ['H353', 'H166', 'H167'],
      keys: ['upstream.url', 'upstream.tls.insecure', 'upstream.tls.weak', 'upstream.tls.min_version'],
      reason:
        'It is, with an https device. A device on the same machine may be reached without TLS, and no test shows who can listen there.',
      vendor: 'Give the device a certificate, or keep other users and programs off the machine.',
    },
    '4.14.2-1': {
      says: 'The server must decide by risk which clients get a refresh token.',
      status: 'not met',
      reason:
        'Each login gets one, because the token response of the device API has one, and Postern does not tell clients apart. A token of `postern issue` comes without one.',
      promises: ['C4', 'H292'],
    },
    '4.14.2-2': {
      says: 'A refresh token must give no more rights, and at no other server, than the login had.',
      status: 'met if configured',
      promises: ['H193', 'C10'],
      keys: ['store.prefix'],
      vendor: 'Give no two devices that share a store the same `store.prefix`.',
    },
    '4.14.2-4': {
      says: 'The server must notice when a stolen refresh token of a public client is used, and end the login.',
      status: 'met if configured',
      promises: ['C6', 'H33'],
      keys: ['tokens.rotate_refresh', 'tokens.refresh_grace'],
      vendor:
        'Test your client programs with rotation: one that keeps its first refresh token loses its login.',
    },
    '4.14.2-8': {
      says: 'A refresh token that is not used for some time should expire.',
      status: 'met if configured',
      promises: ['C7'],
      keys: ['tokens.refresh_lifetime'],
    },
    '4.15.1': {
      says: 'A client should not be able to choose an id that the resource server takes for a user.',
      status: 'met',
      promises: ['H197', 'H308'],
    },
    '4.16-3': {
      says: 'Pages that ask for a password must be safe from frames of other sites, by a content security policy too.',
      status: 'met',
      promises: ['H187', 'H155'],
    },
    '4.16-4': {
      says: 'All pages of the login should carry that policy, and an administrator should be able to name sites that may frame them.',
      status: 'not met',
      reason: 'All pages carry it, but only pages of the same origin may frame them, and no key opens that.',
      promises: ['H187', 'H317'],
    },
    '4.16-7': {
      says: 'For old browsers the policy should be combined with another protection against frames.',
      status: 'met',
      promises: ['H187'],
    },
  },
}
