import type { Source } from '../requirement.ts'

export const IEC_62443_4_2: Source = {
  name: 'IEC 62443-4-2',
  title: 'technical security requirements for components of industrial control systems',
  version: [
    'The requirements of security level 1 for a software application, read on 2026-11-27 in a public restatement, not in the standard itself.',
    'The restatement names no edition. What it leaves out, enhancements and levels 2 to 4 were not read and are not here.',
    'The component is Postern. The device behind it is a component of its own.',
  ].join(' '),
  readAt:
    'github.com/ValtteriL/iec62443-svv-demo at 92f4b64e, SVV-1.md; compared with the rules GC-31-E of the Korean Register (2025), chapter 2, sections 1 to 3',
  requirements: {
    'CR 1.1': {
      says: 'Every human user is identified and authenticated, on every interface that humans can use.',
      status: 'contributes',
      promises: ['C10', 'H152', 'H187', 'H197'],
      keys: ['enforce', 'public_paths', 'passwords', 'admin.password_file'],
      reason:
        'The API, the login page and the live page ask for a password, and a name of `passwords` identifies who logs in. `/metrics` has no login, the live page has one password for all, and the commands rely on the users of the operating system.',
      vendor: 'Give each person a name of its own.',
    },
    'CR 1.3': {
      says: 'All accounts can be managed, by the component or by a system around it.',
      status: 'contributes',
      promises: ['H194', 'H234', 'H308'],
      reason:
        'A name is changed or removed in the configuration, and an account of a htpasswd or shadow file can be locked or expire. A new name takes a restart, and the live page has one account.',
      vendor: 'Say who adds and removes names.',
    },
    'CR 1.4': {
      says: 'Identifiers can be managed, by the component or by a system around it.',
      status: 'contributes',
      promises: ['H194', 'H197', 'H308'],
      keys: ['passwords'],
      reason: 'Up to 16 names identify logins. There are no groups and no roles.',
      vendor: 'Decide on the names.',
    },
    'CR 1.5': {
      says: 'What authenticates can be set at first and changed regularly, defaults that were changed are recognized, and it is protected where it is stored, used and sent.',
      status: 'contributes',
      promises: ['C8', 'C9', 'H75', 'H81', 'H115', 'H225'],
      keys: ['password.file', 'listen.tls'],
      reason:
        'Postern has no default password, so no test can show that a changed default is recognized. It knows nothing of the default of the device.',
      vendor: 'Change the default password of the device.',
    },
    'CR 1.7': {
      says: 'The strength that a password must have can be configured, by the component or a system around it, by recognized guidelines.',
      status: 'contributes',
      promises: ['H225', 'H226', 'H234'],
      reason:
        'Postern refuses passwords that are short or usual where it makes a hash, and names them elsewhere, but the length is fixed. With `password.shadow` the operating system sets the passwords, and its rules can be configured.',
      vendor: 'Configure the rules of the operating system, such as those of PAM.',
    },
    'CR 1.10': {
      says: 'What is typed to authenticate is hidden, and a failed login tells nothing.',
      status: 'met',
      promises: ['C5', 'C9', 'H195', 'H152', 'H235', 'H308', 'H355'],
    },
    'CR 1.11': {
      says: 'The number of failed logins in a time can be limited, and then access is denied for a while.',
      status: 'contributes',
      promises: ['C13', 'C14', 'C15', 'H152', 'H181', 'H69'],
      keys: ['limits.oauth.requests', 'limits.wrong_passwords', 'limits.store', 'listen.trusted_proxies'],
      reason:
        'The limit on logins of an address, right or wrong, is configurable, and denies until its window closes. It is not a limit by account, so that a guesser locks nobody out, and that of the live page is fixed.',
      vendor: 'Choose the limit.',
    },
    'CR 1.12': {
      says: 'A notice about the use of the system can be shown before a login.',
      status: 'contributes',
      promises: ['H187'],
      reason:
        'The heading of the login page for browsers is `realm`, which may be any text of one line. The live page and programs that log in show none.',
      vendor: 'Show a longer notice in the client, or on the way to the login page.',
    },
    'CR 2.1': {
      says: 'Each authenticated user may do only what its duties need.',
      status: 'contributes',
      promises: ['H193', 'H196', 'H203', 'H204', 'H292'],
      keys: ['passwords', 'passwords.enforce'],
      reason:
        'Each name of `passwords` may use the methods and paths of its `allow`. Viewers of the live page all may do the same, and what a body asks for only the device can judge.',
      vendor: 'Write an `allow` for each duty.',
    },
    'CR 2.2': {
      says: 'If the component can be used by radio, its use there can be authorized, watched and restricted.',
      status: "vendor's task",
      reason: 'Postern does not know over which network a client comes.',
      vendor:
        'Restrict the radio network. Leave its addresses out of `listen.allow`, if its clients may not connect.',
    },
    'CR 2.4': {
      says: 'If the component uses mobile code, a policy decides what runs, who may send it, and that it was not changed.',
      status: 'contributes',
      promises: ['H155', 'H187', 'H317'],
      reason:
        'The pages that clients get need no script, and the live page runs its own only, by its Content-Security-Policy. The pages of the device pass as they are.',
      vendor: 'Show the same for the pages of the device.',
    },
    'CR 2.5': {
      says: 'A session of a human is locked after a time without use that can be configured, or when its user wants it, until a new login.',
      status: 'contributes',
      promises: ['H152', 'H218', 'H310'],
      keys: ['browser.idle'],
      reason:
        'Sessions of browsers end after `browser.idle`, or by logging out. Those of the live page end after 12 h, which is fixed, and an open page counts as use.',
      vendor: 'Choose the time.',
    },
    'CR 2.8': {
      says: 'Records for an audit are made of access, errors of requests, events of the system, backups, changed configuration and of the log itself, each with time, source, category, type, id and result.',
      status: 'contributes',
      promises: ['H82', 'H221', 'H222', 'H252', 'H312', 'H314', 'H354'],
      keys: ['log.access', 'log.level', 'log.format'],
      reason:
        'Lines of the log say when, who, what and the result, and lines that were lost are told. They name their event in words, without a category, and Postern makes no backup.',
      vendor: 'Add categories where the log is collected.',
    },
    'CR 2.9': {
      says: 'Records for an audit have room as recommendations say, and a full one does not stop the component.',
      status: 'contributes',
      promises: ['H252', 'H262'],
      reason:
        'A full disk or a reader that hangs ends nothing. The log goes to standard output, so its room is that of what collects it.',
      vendor: 'Give the journal or the collector enough room.',
    },
    'CR 2.10': {
      says: 'If records cannot be written, essential functions go on, and there is a fitting response.',
      status: 'met',
      promises: ['H252', 'H262'],
    },
    'CR 2.11': {
      says: 'Records for an audit have the date and time.',
      status: 'met if configured',
      promises: ['H354'],
      keys: ['log.format', 'log.level'],
      vendor:
        'Set the clock of the machine. Collect the log of the service: on a terminal, `log.format: auto` writes times without a date.',
    },
    'CR 2.12': {
      says: 'If humans use the component, it can be told whether one of them did something.',
      status: 'contributes',
      promises: ['H197', 'H222', 'H312', 'H354'],
      keys: ['passwords', 'log.access', 'log.level'],
      reason:
        'The log names the login of each request. Two people with one password, and viewers of the live page, are told apart by their address at most.',
      vendor: 'Give each person a name of its own.',
    },
    'CR 3.1': {
      says: 'What is sent can be protected from changes on the way.',
      status: 'met if configured',
      promises: ['H115', 'H137', 'H166', 'H217', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'upstream.tls.weak',
        'upstream.tls.min_version',
        'tokens.store',
        'store.tls.insecure',
      ],
      vendor:
        'Let clients verify the certificate. Keep other users and programs off the machine, if the device is reached there without TLS.',
    },
    'CR 3.2': {
      says: 'It is documented which protection against malicious code goes with the component.',
      status: "vendor's task",
      reason:
        'docs/installing.md describes the permissions of the process. It names no product that looks for malicious code.',
      vendor: 'Document what your machine uses.',
    },
    'CR 3.3': {
      says: 'The component helps to verify that its security functions work as intended.',
      status: 'met',
      promises: ['H107', 'H126', 'H127'],
    },
    'CR 3.4': {
      says: 'Software, configuration and other information can be checked for changes, and the results are recorded and reported.',
      status: 'contributes',
      promises: ['H72', 'H76', 'H331', 'H335'],
      reason:
        'Releases and packages are verified before they are installed, and a damaged token file is reported. After that, nothing in Postern checks its program.',
      vendor: 'Let the operating system check the installed files.',
    },
    'CR 3.5': {
      says: 'Input from outside that decides what the component does is validated in form, length and content.',
      status: 'met',
      promises: [
        'C2',
        'C20',
        'H1',
        'H6',
        'H7',
        'H8',
        'H9',
        'H20',
        'H22',
        'H24',
        'H27',
        'H28',
        'H29',
        'H31',
        'H35',
        'H40',
        'H51',
        'H96',
        'H103',
        'H41',
        'H72',
        'H94',
        'H153',
        'H155',
        'H190',
      ],
      vendor: 'Bodies for the device pass as they are: validate them in the firmware.',
    },
    'CR 3.6': {
      says: 'If normal operation cannot go on, outputs to a process take a state that was decided before.',
      status: "vendor's task",
      reason: 'Postern has no outputs to a process.',
      vendor: 'Show that the device does so.',
    },
    'CR 3.7': {
      says: 'Errors are handled without telling anything that helps an attacker.',
      status: 'contributes',
      promises: ['C9', 'C18', 'H308', 'H317'],
      reason:
        'That holds for the errors of Postern, but for one word: `Proxy-Status` names why the device or the shared store failed. Those of the device pass as they are.',
      vendor: 'Have the firmware show nothing of its inside in an error.',
    },
    'CR 4.1': {
      says: 'Information that not everybody may read can be kept confidential where it is stored and on the way.',
      status: 'met if configured',
      promises: ['H74', 'H81', 'H115', 'H132', 'H137', 'H166', 'H217', 'H225', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'upstream.tls.weak',
        'upstream.tls.min_version',
        'tokens.store',
        'store.tls.insecure',
        'password.file',
      ],
      vendor:
        'Give password and key files the mode 0640 and the group of the service. Keep the log as confidential as the addresses in it. Keep other users and programs off the machine, if the device is reached there without TLS.',
    },
    'CR 4.3': {
      says: 'Cryptography follows practice and recommendations that are recognized.',
      status: 'contributes',
      promises: ['C4', 'H166', 'H217', 'H225'],
      keys: ['listen.tls', 'upstream.tls.weak', 'upstream.tls.min_version', 'password.file'],
      reason:
        'The promises are about TLS, the length of tokens and hashes that are cheap to guess. How keys are made and kept is described in docs/data.md, and no test shows it.',
      vendor: 'Make keys for certificates and releases by such recommendations.',
    },
    'CR 5.1': {
      says: 'The component fits into networks that are divided into zones.',
      status: 'contributes',
      promises: ['H123', 'H182'],
      keys: ['listen.allow', 'admin.address'],
      reason:
        'Clients, operators and the device can each have a network of their own, and lists say who may connect. Whether networks are divided is up to who builds them.',
      vendor: 'Divide the networks.',
    },
    'CR 6.1': {
      says: 'Authorized people and tools can read the records for an audit, and not change them.',
      status: 'contributes',
      promises: ['H82', 'H160', 'H314'],
      reason:
        'The log is JSON for journald or any collector, which decides who may read. `postern explain` and `status` only read.',
      vendor: 'Set who may read the journal.',
    },
    'CR 7.1': {
      says: 'Essential functions go on in a reduced way under an attack that wants to stop them.',
      status: 'contributes',
      promises: ['C25', 'C26', 'H77', 'H99', 'H125', 'H245', 'H250', 'H268'],
      reason:
        'Floods of requests, connections and memory cost the service of no one else. A full line, or a processor full of TLS handshakes, does.',
      vendor: 'Bound the rate of new connections in the network.',
    },
    'CR 7.2': {
      says: 'Security functions use a limited part of the resources, so that they cannot be exhausted by them.',
      status: 'met',
      promises: ['C9', 'H29', 'H32', 'H79', 'H161', 'H181', 'H212', 'H221', 'H244', 'H251', 'H252'],
    },
    'CR 7.3': {
      says: 'The component takes part in backups of the system, and a backup does not disturb it.',
      status: "vendor's task",
      reason:
        'The state and the configuration of Postern are files, and a backup of them while it runs is no promise.',
      vendor: 'Back up `/etc/postern`, and `state_dir` when Postern is stopped.',
    },
    'CR 7.4': {
      says: 'After a failure the component can be brought back to a known, secure state.',
      status: 'met',
      promises: ['H71', 'H72', 'H76', 'H102'],
    },
    'CR 7.6': {
      says: 'The component can be configured as its guide recommends, and shows how network and security are configured now.',
      status: 'contributes',
      promises: ['H105', 'H107', 'H224'],
      reason:
        '`postern check` prints the configuration that is in force and what gives up protection in it. That it prints every key is no promise.',
      vendor: 'Follow docs/hardening.md.',
    },
    'CR 7.7': {
      says: 'Functions, ports and protocols that are not needed can be restricted.',
      status: 'contributes',
      promises: ['C23', 'H14', 'H182', 'H280', 'H303'],
      keys: ['admin.address', 'public_paths'],
      reason:
        'The login page, the admin listener and public paths can be off, and methods and upgrades of a name can be restricted by its `allow`. HTTP/2 and the token endpoint cannot be off.',
      vendor: 'Switch off what you do not need, in the device, too.',
    },
  },
}
