import type { Source } from '../../requirement.ts'

/** V12: TLS on both sides of Postern. */
export const COMMUNICATION: Source['requirements'] = {
  '12.1.1': {
    says: 'L1: Only TLS 1.2 and 1.3 are enabled, and 1.3 is preferred.',
    status: 'met if configured',
    promises: ['C23', 'H217', 'H166', 'H320', 'H137'],
    keys: ['listen.tls', 'upstream.tls.min_version'],
  },
  '12.1.2': {
    says: 'L2: Only recommended cipher suites are enabled, the strongest first, at level 3 only those with forward secrecy.',
    status: 'contributes',
    promises: ['H217'],
    keys: ['listen.tls', 'upstream.tls.weak'],
    reason:
      'Clients get forward secrecy and authenticated encryption only. Towards the device the list is that of Node.js, which has suites without forward secrecy for TLS 1.2. No test reads the order.',
    vendor: 'Give the device TLS 1.3, and set `upstream.tls.min_version: TLSv1.3`.',
  },
  '12.1.4': {
    says: 'L3: The revocation of certificates is checked, for example with a stapled OCSP response.',
    status: 'not met',
    reason:
      'Postern staples no OCSP response, and asks nobody whether the certificate of the device was revoked. It loads a renewed certificate without a restart, so certificates may live for a short time.',
    promises: ['H76'],
  },
  '12.1.5': {
    says: 'L3: The name of the server is hidden in the handshake by Encrypted Client Hello.',
    status: 'not met',
    reason: 'Node.js has no Encrypted Client Hello for servers.',
  },
  '12.2.1': {
    says: 'L1: All connections of clients use TLS, and none falls back to cleartext.',
    status: 'met if configured',
    promises: ['H115', 'H217', 'H320'],
    keys: ['listen.tls', 'admin.tls'],
  },
  '12.2.2': {
    says: 'L1: The certificate comes from an authority that is publicly trusted.',
    status: 'not met',
    reason:
      'Postern makes a certificate of its own unless the operator gives one in `listen.tls.cert`: a device in a private network has no public name.',
    promises: ['H76', 'H110'],
    vendor: 'Give Postern a certificate of a public authority where clients reach it by a public name.',
  },
  '12.3.1': {
    says: 'L2: All connections from and to the application are encrypted, also those for monitoring, management and storage.',
    status: 'contributes',
    promises: ['H115', 'H137', 'H320', 'H353'],
    keys: ['listen.tls', 'admin.tls', 'upstream.url', 'tokens.store'],
    reason:
      'Each connection can be. Those within one machine, by loopback or a Unix socket, are not by default.',
    vendor: 'Encrypt what leaves the machine, and the log where it is sent.',
  },
  '12.3.2': {
    says: 'L2: A TLS client verifies the certificate of the server before it sends anything.',
    status: 'met if configured',
    promises: ['H353', 'H167', 'H137'],
    keys: ['upstream.tls.insecure', 'store.tls.insecure'],
  },
  '12.3.3': {
    says: 'L2: HTTP between parts of the application uses TLS, and does not fall back to cleartext.',
    status: 'contributes',
    promises: ['H353'],
    keys: ['upstream.url'],
    reason: 'It does with an https device. A device on the same machine may be reached without TLS.',
    vendor: 'Give the device a certificate.',
  },
  '12.3.4': {
    says: 'L2: Between parts of the application only certain certificates or authorities are trusted.',
    status: 'met if configured',
    promises: ['H353', 'H167', 'H137'],
    keys: ['upstream.url', 'upstream.tls.insecure', 'tokens.store', 'store.tls.insecure'],
    vendor:
      'Name the certificate in `upstream.tls.pin`, or its authority in `upstream.tls.ca`: otherwise those of the system are trusted.',
  },
  '12.3.5': {
    says: 'L3: The parts of an application prove to each other who they are, for example by client certificates.',
    status: 'contributes',
    promises: ['H166', 'H167', 'H353'],
    keys: ['upstream.url', 'upstream.tls.insecure'],
    reason:
      'The device proves it by its certificate. Postern proves it by one only if the device asks for it, else by a password.',
    vendor: 'Have the device ask for a client certificate: `upstream.tls.cert`.',
  },
}
