import type { Source } from '../../requirement.ts'

/** V13: services, secrets and what leaks by itself. */
export const CONFIGURATION: Source['requirements'] = {
  '13.1.1': {
    says: 'L2: All connections that the application needs are documented.',
    status: 'contributes',
    promises: ['H338'],
    reason:
      'The reference has a key for each address that Postern listens at or connects to. What the device connects to is not known.',
    vendor: 'Document the connections of the device.',
  },
  '13.1.2': {
    says: 'L3: The documentation gives the most connections to each service, and what happens beyond.',
    status: 'contributes',
    promises: ['C25', 'H178', 'H338'],
    reason: 'The reference does, and tests hold the behaviour. No test reads what the sentences say.',
    vendor: 'Add the services that the device uses.',
  },
  '13.1.3': {
    says: 'L3: The documentation says for each service when it is given up, released and asked again.',
    status: 'contributes',
    promises: ['C24', 'C25', 'H46', 'H47', 'H55', 'H135', 'H338'],
    reason:
      'The reference and the promises do, and tests hold the behaviour. No test reads what the sentences say.',
    vendor: 'Add the services that the device uses.',
  },
  '13.1.4': {
    says: 'L3: The documentation names the secrets that matter, and when they are changed.',
    status: "vendor's task",
    reason: 'docs/data.md names the secrets of Postern. When to change them depends on the installation.',
    vendor: 'Write down when passwords, keys and issued tokens are changed.',
  },
  '13.2.1': {
    says: 'L2: Parts of the application log in to each other by accounts of their own or tokens that end soon, and not by fixed passwords.',
    status: 'not met',
    reason:
      'Devices have accounts with a fixed password, and `upstream.auth` uses one. A client certificate takes its place where the firmware knows it.',
    promises: ['H166', 'H170'],
    vendor: 'Have the device accept a client certificate.',
  },
  '13.2.2': {
    says: 'L2: The accounts for that have no more rights than needed.',
    status: 'contributes',
    promises: ['H122', 'H124', 'H137', 'H280'],
    reason:
      'That is so for the shared store and the operating system. The rights of the account at the device are set there.',
    vendor: 'Give `upstream.auth` an account that may do no more than clients need.',
  },
  '13.2.3': {
    says: 'L2: No credential between services is a default one.',
    status: "vendor's task",
    reason: 'Postern does not know which password the firmware is delivered with.',
    vendor: 'Have the default password of the device changed before `upstream.auth` uses it.',
  },
  '13.2.4': {
    says: 'L2: A list says which systems the application may connect to.',
    status: 'contributes',
    promises: ['H14', 'H25', 'H171'],
    reason:
      'The configuration is that list, and no client can change it. Names in it are resolved by the resolver of the system.',
    vendor: 'Restrict the connections of the machine by a firewall, too.',
  },
  '13.2.5': {
    says: 'L2: A list says what the server may load and where it may send requests.',
    status: 'contributes',
    promises: ['H25', 'H155', 'H171', 'H280'],
    reason:
      'Addresses are those of the configuration. Files are bounded by the unit and the permission model where these are used.',
    vendor: 'Run Postern under the unit or the image of the release.',
  },
  '13.2.6': {
    says: 'L3: Connections to services keep to the documented numbers, times and repetitions.',
    status: 'met',
    promises: ['C24', 'C25', 'H46', 'H47', 'H55', 'H135', 'H178'],
  },
  '13.3.1': {
    says: 'L2: Secrets are kept by a system for secrets, at level 3 in hardware, and are in no source or build.',
    status: 'contributes',
    promises: ['H75', 'H81', 'H124'],
    reason:
      'Postern reads secrets from files, which such a system can write and replace. It makes no use of hardware for keys.',
    vendor: 'Have your system for secrets write the files.',
  },
  '13.3.2': {
    says: 'L2: A secret can be read only by who needs it.',
    status: 'contributes',
    promises: ['H74', 'H81'],
    reason:
      'That holds for the files that Postern makes. The files of the operator have the mode that he gives them; `check` warns.',
    vendor: 'Give password and key files the mode 0640 and the group of the service.',
  },
  '13.3.3': {
    says: 'L3: Keys are used only within a separate security module.',
    status: 'not met',
    reason: 'Keys are files, and the process uses them itself.',
  },
  '13.3.4': {
    says: 'L3: Secrets end, and are changed by a schedule.',
    status: 'contributes',
    promises: ['C8', 'H76', 'H113', 'H137', 'H295'],
    reason:
      'Each secret can be changed, most of them without a restart. Tokens and certificates end; passwords have no end.',
    vendor: 'Change passwords by your schedule.',
  },
  '13.4.1': {
    says: 'L1: No files of source control are delivered, or nobody can reach them.',
    status: 'contributes',
    promises: ['H122', 'H155'],
    reason:
      'Postern serves no files but those of the live page. The device may serve what it was delivered with.',
    vendor: 'Look for such files in the firmware.',
  },
  '13.4.2': {
    says: 'L2: No part runs in a mode for debugging.',
    status: 'contributes',
    promises: ['C18', 'H280'],
    reason: 'Postern has no such mode, and its errors never show the inside. The firmware may have one.',
    vendor: 'Switch off debugging in the firmware.',
  },
  '13.4.3': {
    says: 'L2: No list of the files in a folder is served.',
    status: 'contributes',
    promises: ['H155'],
    reason: 'Postern serves files by their exact names. The device may list its folders.',
    vendor: 'Switch that off in the firmware.',
  },
  '13.4.4': {
    says: 'L2: TRACE is not supported.',
    status: 'met',
    promises: ['H14'],
  },
  '13.4.5': {
    says: 'L2: Pages for monitoring and the documentation of the API are not exposed, unless somebody decided that.',
    status: 'met if configured',
    promises: ['C10', 'H151', 'H152', 'H153', 'H182'],
    keys: ['admin.address', 'enforce', 'public_paths'],
  },
  '13.4.6': {
    says: 'L3: The versions of software behind the server are not shown.',
    status: 'contributes',
    promises: ['C18', 'H306', 'H317'],
    reason:
      'Postern names no version of its own. Fields of the device are removed if they are listed, and its bodies pass.',
    vendor: 'List `Server` and the like in `upstream.drop_response`, and name no versions on pages.',
  },
  '13.4.7': {
    says: 'L3: Only files of certain kinds are served.',
    status: 'contributes',
    promises: ['H155', 'H193'],
    reason:
      'That holds for the live page. For the device, an `allow` with paths can say so, but no list of extensions.',
    vendor: 'Serve from the firmware only what its pages need.',
  },
}
