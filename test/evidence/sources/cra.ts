import type { Source } from '../requirement.ts'

export const CRA: Source = {
  name: 'CRA',
  title: 'Cyber Resilience Act, Regulation (EU) 2024/2847, Annex I',
  version: [
    'Regulation of 23 October 2024 (OJ L, 2024/2847, 20.11.2024), Annex I, parts I and II.',
    'Its requirements were read on 2026-11-27 as they are quoted in two public documents, not in the Official Journal itself.',
    'Point (2) of part I applies as the risk assessment of the manufacturer says (Article 13), which only the vendor can write.',
    'The clauses are judged for Postern as a product of its own. For the device behind it the vendor shows the same.',
  ].join(' '),
  readAt: [
    'github.com/orcwg/cra-hub at 06db6bb8, inventory.md, of the Open Regulatory Compliance Working Group (version 1, May 2025);',
    'I(1) in a public summary of the Annex. The authentic text: eur-lex.europa.eu/eli/reg/2024/2847/oj',
  ].join(' '),
  requirements: {
    'I(1)': {
      says: 'The product is designed, developed and made so that its security suits the risks.',
      status: "vendor's task",
      reason: 'What suits the risks is the result of an assessment of the device, its users and its network.',
      vendor: 'Assess the risks. SECURITY.md says what Postern protects and what it does not.',
    },
    'I(2)(a)': {
      says: 'The product has no known exploitable vulnerability when it comes on the market.',
      status: 'contributes',
      promises: ['H336', 'H337', 'H349'],
      reason:
        'The bill of materials lets a scanner find advisories about a release. No release is scanned by itself.',
      vendor: 'Scan each release, and the firmware, before you publish it.',
    },
    'I(2)(b)': {
      says: 'The product comes with a secure configuration, and can be set back to it.',
      status: 'contributes',
      promises: ['H105', 'H107', 'H120', 'H224'],
      keys: ['limits.wrong_passwords', 'listen.tls', 'enforce', 'public_paths'],
      reason:
        'By default Postern uses TLS, demands tokens and has no public path. `limits.wrong_passwords` is `off` by default, as the documented API answers; `postern init` writes `slow`. A purge of the package removes everything, and no command sets a configuration back.',
      vendor: 'Ship the configuration that `postern init` writes, and a way back to it.',
    },
    'I(2)(c)': {
      says: 'Vulnerabilities can be fixed by security updates, where it suits automatically by default, with notice, and so that the user can refuse or put them off.',
      status: 'contributes',
      promises: ['H119', 'H331', 'H335'],
      reason:
        'There are signed releases and a signed repository, from which the operating system can install. Postern itself neither looks for updates nor tells of them.',
      vendor: 'Publish updates, switch on that the operating system installs them, and tell the users.',
    },
    'I(2)(d)': {
      says: 'Access without permission is prevented, such as by authentication, and what may be such an access is reported.',
      status: 'contributes',
      promises: ['C10', 'C12', 'H24', 'H60', 'H149', 'H152', 'H165', 'H181', 'H193', 'H221'],
      keys: [
        'enforce',
        'public_paths',
        'passwords.enforce',
        'limits.wrong_passwords',
        'admin.address',
        'admin.password_file',
        'log.level',
        'listen.trusted_proxies',
      ],
      reason:
        'Without a token nothing reaches the device, and guesses and refusals are logged, counted and raise an alarm. Whether a password without a second factor is enough is a judgement by the risks, and `/metrics` has no login.',
      vendor: 'Let Postern be the only way to the device. Have the alarms reach a person.',
    },
    'I(2)(e)': {
      says: 'Data is confidential where it is stored, sent and processed, such as by encryption that is state of the art.',
      status: 'contributes',
      promises: ['H74', 'H81', 'H115', 'H132', 'H166', 'H217', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'upstream.tls.weak',
        'upstream.tls.min_version',
        'tokens.store',
        'password.file',
      ],
      reason:
        'What is sent is encrypted, and tokens are stored as digests. The addresses in the token file and in the log, and the key of the certificate, are protected by the permissions of the files alone.',
      vendor: 'Encrypt the disk, if the risk asks for it.',
    },
    'I(2)(f)': {
      says: 'Data, commands, programs and configuration cannot be changed without permission, and damage is reported.',
      status: 'contributes',
      promises: ['C10', 'C21', 'H49', 'H72', 'H76', 'H101', 'H217', 'H331', 'H353'],
      keys: ['enforce', 'public_paths', 'listen.tls', 'upstream.url', 'upstream.tls.insecure'],
      reason:
        'Messages pass unchanged, a broken transfer shows as such, and a damaged token file is set aside and reported. Once it is installed, nothing in Postern verifies its program or its configuration.',
      vendor: 'Let the operating system verify the installed files.',
    },
    'I(2)(g)': {
      says: 'Only the data that the purpose needs is processed.',
      status: 'contributes',
      promises: ['H79', 'H81', 'H161', 'H162', 'H313'],
      reason:
        'What Postern remembers and logs has no body, no secret, and of a query only what is named. It logs the whole address of each client.',
      vendor: 'Decide how long logs are kept, and whether they need addresses.',
    },
    'I(2)(h)': {
      says: 'The essential functions stay available, also after an incident and under attacks that want to stop them.',
      status: 'contributes',
      promises: ['C25', 'C26', 'H71', 'H73', 'H77', 'H99', 'H125', 'H245', 'H250', 'H268'],
      keys: ['limits.api.requests', 'limits.store', 'listen.trusted_proxies'],
      reason:
        'Floods of requests, connections and memory cost the service of no one else. A full line, or a processor full of TLS handshakes, does: Postern cannot make room there.',
      vendor: 'Bound the rate of new connections in the network.',
    },
    'I(2)(i)': {
      says: 'The product and what is connected to it harm the availability of other devices and networks as little as possible.',
      status: 'contributes',
      promises: ['C25', 'H46', 'H63', 'H128', 'H143', 'H198'],
      reason:
        'Postern bounds its requests to the device and its questions to a shared store. The promises are not about what else the device sends into networks.',
      vendor: 'Show the same for the device.',
    },
    'I(2)(j)': {
      says: 'The product is designed so that it can be attacked in few places, also from outside.',
      status: 'contributes',
      promises: ['C12', 'H14', 'H122', 'H151', 'H182', 'H280'],
      keys: ['admin.address', 'listen.allow'],
      reason:
        'Postern has one port for clients and one for operators, and not a byte of a refused request goes on. Whether that is few enough is a judgement.',
      vendor: 'Close the interfaces of the device that nobody needs.',
    },
    'I(2)(k)': {
      says: 'The product is designed so that an incident does little harm, by techniques against exploitation.',
      status: 'contributes',
      promises: ['H122', 'H124', 'H132', 'H280', 'H325'],
      reason:
        'A sidecar may start no program and load no native code, and the units and the image give it few rights. Started by hand or as a library, it lacks the walls of the unit.',
      vendor: 'Start it as shipped.',
    },
    'I(2)(l)': {
      says: 'The product records and monitors what matters for security, such as access to data and changes of it, and the user can switch that off.',
      status: 'contributes',
      promises: ['H82', 'H149', 'H160', 'H221', 'H222', 'H291', 'H312', 'H354'],
      keys: ['log.access', 'log.level'],
      reason:
        'Requests, refusals and revocations are lines of the log, counts and alarms, and `log.access: false` switches the lines of requests off. What happens in the device without a request is not seen, and no promise is about the lines of a changed configuration.',
      vendor: 'Record what the device does. Keep the log where an attacker cannot change it.',
    },
    'I(2)(m)': {
      says: 'Users can remove all data and settings for good, simply and securely, and move them securely where they can be moved.',
      status: 'contributes',
      promises: ['H102', 'H120', 'H277'],
      reason:
        'A purge of the package removes every file, and a revocation stays one. The blocks of the disk are not overwritten, and the journal belongs to the operating system.',
      vendor: 'Erase the disk, or its key, when the device changes hands.',
    },
    'II(1)': {
      says: 'The manufacturer knows and documents the components and vulnerabilities, with a bill of materials that machines can read.',
      status: 'contributes',
      promises: ['H334', 'H337', 'H349'],
      reason:
        'A release has a bill of materials in CycloneDX, with the packages and what is in Node.js. Postern keeps no list of vulnerabilities.',
      vendor: 'Document the vulnerabilities, and have a bill of materials for the firmware.',
    },
    'II(2)': {
      says: 'Vulnerabilities are fixed without delay, and security updates come apart from new functions where that is possible.',
      status: "vendor's task",
      reason: 'SECURITY.md has times for a vendor who names itself in a release.',
      vendor: 'Fix vulnerabilities within the times of SECURITY.md, or of a policy of your own.',
    },
    'II(3)': {
      says: 'The security of the product is tested and reviewed effectively and regularly.',
      status: 'contributes',
      promises: ['C20', 'H96', 'H127', 'H237'],
      reason:
        'Each promise has tests, among them random bytes and an independent reader of HTTP, and `postern verify` tests an installation. That they are run regularly is a process.',
      vendor: 'Run them for each release, and have the device tested, too.',
    },
    'II(4)': {
      says: 'Once a security update exists, it is published what was fixed, in which products, how severe it was and what users do.',
      status: "vendor's task",
      reason: 'SECURITY.md says what an entry about a security fix names.',
      vendor: 'Publish that with each security update.',
    },
    'II(5)': {
      says: 'There is a policy of coordinated disclosure of vulnerabilities, and it is kept.',
      status: "vendor's task",
      reason: 'SECURITY.md has one, which holds for a vendor who names itself in a release.',
      vendor: 'Have such a policy for the device, and keep it.',
    },
    'II(6)': {
      says: 'It is easy to report vulnerabilities of the product and its components, by a contact address.',
      status: 'contributes',
      promises: ['H334', 'H337'],
      reason:
        'A release names the security contact of its vendor, and the bill of materials names the components, so that their makers are found.',
      vendor: 'Name the contact, and answer.',
    },
    'II(7)': {
      says: 'Updates are distributed securely and in time, security updates automatically where it suits.',
      status: 'contributes',
      promises: ['H331', 'H333', 'H335'],
      reason:
        'The distribution is secure: a changed package, or one that another key signed, is refused. When it comes, and whether by itself, is not a matter of the program.',
      vendor: 'Publish updates in time, and have the operating system install them.',
    },
    'II(8)': {
      says: 'Security updates come without delay and free of charge, with a notice that says what to do.',
      status: "vendor's task",
      reason: 'SECURITY.md says how users hear of a fix.',
      vendor: 'Send such a notice to the operators.',
    },
  },
}
