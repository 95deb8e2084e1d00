import type { Source } from '../../requirement.ts'

/** V8: what a login may do. */
export const AUTHORIZATION: Source['requirements'] = {
  '8.1.1': {
    says: 'L1: Rules about who may use which function and which data are documented.',
    status: 'contributes',
    promises: ['H193', 'H300'],
    reason:
      'The lists of `allow` are such rules for functions, in one file. Rules about data are the device’s.',
    vendor: 'Document who should have which `allow`, and why.',
  },
  '8.1.2': {
    says: 'L2: Rules about who may read and write which fields of an object are documented.',
    status: "vendor's task",
    vendor: 'Document them for the API of the device.',
  },
  '8.1.3': {
    says: 'L3: The documentation names the circumstances that decisions depend on, such as address and time.',
    status: 'contributes',
    promises: ['H182', 'H338'],
    reason:
      'Postern judges by the address and by wrong passwords, and its reference says so. The device may judge by more.',
    vendor: 'Add what the firmware judges by.',
  },
  '8.1.4': {
    says: 'L3: The documentation says what follows from these circumstances.',
    status: 'contributes',
    promises: ['H181', 'H182', 'H338'],
    reason: 'docs/hardening.md says whom Postern refuses and slows down. The device may do more.',
    vendor: 'Add what the firmware does.',
  },
  '8.2.1': {
    says: 'L1: A function can be used only by those who have the explicit right to it.',
    status: 'contributes',
    promises: ['H14', 'H193', 'H203', 'H204'],
    keys: ['passwords', 'passwords.enforce', 'enforce', 'public_paths'],
    reason:
      'A name with `allow` may do what its list says and nothing else. One without may do everything, and a function in a query or body cannot be listed.',
    vendor: 'Give each function a path of its own, and each purpose an `allow`.',
  },
  '8.2.2': {
    says: 'L1: An object can be used only by those who have the explicit right to it.',
    status: 'contributes',
    promises: ['H193'],
    keys: ['passwords', 'passwords.enforce', 'enforce', 'public_paths'],
    reason: 'Postern knows an object only if it has a path of its own.',
    vendor: 'Check the right to an object in the firmware.',
  },
  '8.2.3': {
    says: 'L2: A field of an object can be read or written only by those who have the explicit right to it.',
    status: "vendor's task",
    reason: 'Postern does not read bodies.',
    vendor: 'Check the right in the firmware.',
  },
  '8.2.4': {
    says: 'L3: Decisions depend on circumstances such as time, place and device, at the login and during the session.',
    status: 'contributes',
    promises: ['H181', 'H182', 'H209'],
    keys: ['listen.allow', 'limits.wrong_passwords', 'listen.trusted_proxies'],
    reason:
      'They depend on the address, also during a session, and on wrong passwords. Time and place are no part of them.',
    vendor: 'Put a gateway that judges by more in front, if you need it.',
  },
  '8.3.1': {
    says: 'L1: Rights are checked on the server, and not by what a client could change.',
    status: 'met if configured',
    promises: ['C10', 'C12', 'H193', 'H203', 'H204', 'H152', 'H153'],
    keys: ['enforce', 'passwords.enforce', 'public_paths'],
  },
  '8.3.2': {
    says: 'L3: A change of rights takes effect at once.',
    status: 'met if configured',
    promises: ['C8', 'H194', 'H196', 'H209', 'H298'],
    keys: ['enforce', 'tokens.offline_grace'],
    vendor:
      'In a fleet, a sidecar that cannot reach the shared store misses it for `tokens.offline_grace` at most. Keep that short.',
  },
  '8.3.3': {
    says: 'L3: The right to an object is that of the user, and not that of a service in between.',
    status: 'not met',
    reason:
      'With `upstream.auth` the device sees one account for all clients. Postern itself judges by the name of the login, and can tell the device that name.',
    promises: ['H193', 'H197'],
    vendor: 'Have the firmware judge by the name: `upstream.headers` with `{client_name: true}`.',
  },
  '8.4.2': {
    says: 'L3: Interfaces for administrators have several layers of protection, and the place in the network is not the only one.',
    status: 'contributes',
    promises: ['H151', 'H152', 'H153', 'H155', 'H182', 'H320'],
    keys: ['admin.address', 'admin.tls', 'admin.password_file'],
    reason:
      'The live page has a password, TLS, and checks of host, origin and address. The state of the viewer’s machine is not judged, and `/metrics` needs no login.',
    vendor: 'Put the admin listener into a network that checks its machines.',
  },
}
