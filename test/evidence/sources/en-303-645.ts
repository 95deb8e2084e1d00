import type { Source } from '../requirement.ts'

/** The condition under which the checks of Postern stand before the whole device. */
const NO_OTHER_WAY = 'Let Postern be the only way to the device.'

export const EN_303_645: Source = {
  name: 'EN 303 645',
  title: 'ETSI, cyber security for consumer Internet of Things: baseline requirements',
  version: [
    'V2.1.1 (June 2020), read on 2026-11-27 in an unofficial copy by provision; 5.5-5, which it lacks, in another copy.',
    'V3.1.3 (September 2024) is newer. Its text was not read. Read were its table B.1, a summary of the provisions that say "shall",',
    'and the assessment of a device by each provision.',
    'By these, V3.1.3 calls 4-1 5.0-1. It splits 5.3-4, 5.3-6, 5.3-15, 5.6-4, 5.13-1 and 6-3 into an A and a B.',
    '5.1-3 also concerns machines. 5.6-4A accepts a debug interface that is protected in place of disabled. 5.8-2 demands best practice.',
    '5.5-8 lasts for the whole life of a secret, 5.11-1 concerns all data of users, and 6-1 also wants to know for how long.',
    'In place of "constrained device", each provision names the feature by which it applies.',
    'What V3.1.3 adds stands below with "(V3.1.3)".',
    'The provisions concern the whole device, so a program beside it meets none of them alone.',
  ].join(' '),
  readAt: [
    'github.com/vsang181/EN-303-645---v2.1.1 at c1179e71, with the numbers that ETSI writes;',
    'for V3.1.3 public copies of table B.1 and of the summary, which a search of public code found,',
    'and github.com/ruuvi/ruuvi.gateway_esp.c, folder cra/303645',
  ].join(' '),
  requirements: {
    '4-1': {
      says: 'The reason is on record for each recommendation that the device does not follow, or that does not concern it.',
      status: "vendor's task",
      vendor: 'Write the reasons down. This table has those about Postern.',
    },
    '5.1-1': {
      says: 'Once the device is set up, each of its passwords belongs to this device alone, or its user chose it.',
      status: 'contributes',
      promises: ['H225', 'H226'],
      reason:
        'Postern comes without a password, and refuses or names one that is short or usual. It cannot know whether two devices have the same one.',
      vendor:
        'Give each device its own password, or let the user choose it. Change the passwords of the firmware, too.',
    },
    '5.1-2': {
      says: 'Passwords that come with the device cannot be derived or guessed for many devices at once.',
      status: "vendor's task",
      reason: 'Postern comes without a password.',
      vendor: 'Draw such passwords at random, and not from a serial number or an address.',
    },
    '5.1-2A (V3.1.3)': {
      says: 'Machines should not use passwords to authenticate to each other.',
      status: 'contributes',
      promises: ['H292', 'H294'],
      reason:
        'A client that gets a token by `postern issue` needs no password. The documented API of the devices gives tokens for a password, also to programs.',
      vendor: 'Issue tokens to the programs, and give them no password.',
    },
    '5.1-3': {
      says: 'The device authenticates its users by cryptography that is best practice for the purpose.',
      status: 'contributes',
      promises: ['C4', 'H217', 'H225'],
      keys: ['listen.tls', 'password.file'],
      reason:
        'The promises are about the logins at Postern: random tokens of 256 bits, TLS, and a warning of weak hashes.',
      vendor: 'Show the same for every other login of the device.',
    },
    '5.1-4': {
      says: 'A user or an administrator can change what a login needs, in a simple way.',
      status: 'contributes',
      promises: ['C8', 'H75', 'H194'],
      reason:
        'A new line in the password file takes effect without a restart and ends the earlier logins. Postern has no page for it.',
      vendor:
        'Give the user a way to write that file, or let the device itself check the password (`password.device`).',
    },
    '5.1-5': {
      says: 'Guessing a login over the network by trying is not practicable, unless the device is constrained.',
      status: 'contributes',
      promises: ['C14', 'C15', 'H152', 'H181', 'H212', 'H213', 'H69'],
      keys: ['limits.wrong_passwords', 'limits.oauth.requests', 'limits.store', 'listen.trusted_proxies'],
      reason:
        'Postern slows guesses, by address and in sum. A weak password is guessed in the end, and the device may have other logins.',
      vendor: `Have strong passwords. ${NO_OTHER_WAY}`,
    },
    '5.2-1': {
      says: 'The manufacturer publishes how to report a vulnerability, and when a reporter hears that it arrived and how it goes on.',
      status: 'contributes',
      promises: ['H334'],
      reason:
        'A release names the security contact of its vendor. SECURITY.md has times for the answer and for the fix, but none for news in between. They hold only for a vendor who names itself.',
      vendor: 'Publish the policy for the device, with its times.',
    },
    '5.2-2': {
      says: 'Reported vulnerabilities are dealt with in time.',
      status: "vendor's task",
      vendor: 'Act within the times that you publish.',
    },
    '5.2-3': {
      says: 'During the support period, the manufacturer looks for vulnerabilities in what it sells and runs, and fixes them.',
      status: 'contributes',
      promises: ['H337', 'H349'],
      reason:
        'The bill of materials of a release lets a scanner find the advisories about what is in Postern. Postern itself tells nobody of them.',
      vendor: 'Scan the bill of materials and the firmware regularly, and make releases.',
    },
    '5.3-1': {
      says: 'Every software component of the device can be updated securely.',
      status: 'contributes',
      promises: ['H119', 'H331', 'H335'],
      reason: 'Postern is updated by signed releases. It does not update the firmware.',
      vendor: 'Have such updates for the firmware and the operating system.',
    },
    '5.3-2': {
      says: 'The device has a mechanism that installs updates securely, unless it is constrained.',
      status: 'contributes',
      promises: ['H331', 'H335'],
      reason: 'The mechanism for Postern is apt with a signed repository, or a signed list of digests.',
      vendor: 'Put a repository or a download address up, and have a mechanism for the firmware.',
    },
    '5.3-3': {
      says: 'The user can apply an update simply.',
      status: 'contributes',
      promises: ['H119', 'H335'],
      reason: 'An upgrade of the package is one command, and keeps the tokens and the configuration.',
      vendor: 'Make the updates of the device as simple.',
    },
    '5.3-4': {
      says: 'Updates are applied automatically.',
      status: "vendor's task",
      reason: 'Postern does not update itself.',
      vendor: 'Let the operating system install updates from the signed repository.',
    },
    '5.3-4B (V3.1.3)': {
      says: 'Automatic updates are switched on when the device is set up, if the user agrees.',
      status: "vendor's task",
      reason: 'Postern does not update itself.',
      vendor: 'Ask the user when the device is set up.',
    },
    '5.3-5': {
      says: 'The device looks for security updates after it was set up, and regularly from then on.',
      status: "vendor's task",
      reason: 'Postern asks no server for news.',
      vendor: 'Let the package manager of the operating system look.',
    },
    '5.3-6': {
      says: 'Automatic updates and notices of updates are on at first, and the user can switch them off, on, or put them off.',
      status: "vendor's task",
      reason: 'Postern has neither.',
      vendor: 'Offer these settings.',
    },
    '5.3-7': {
      says: 'The update mechanism uses cryptography that is best practice.',
      status: 'contributes',
      promises: ['H331', 'H335'],
      reason:
        'The signatures of a release are those of OpenSSH and of apt, made with a key that the vendor chooses.',
      vendor: 'Choose a key of today, guard it, and do the same for the firmware.',
    },
    '5.3-8': {
      says: 'Security updates come in time.',
      status: "vendor's task",
      reason: 'SECURITY.md has times for a vendor who names itself in a release.',
      vendor: 'Release security updates within the times of SECURITY.md, or of a policy of your own.',
    },
    '5.3-9': {
      says: 'The device verifies that an update is genuine and unchanged.',
      status: 'contributes',
      promises: ['H331', 'H335', 'H336'],
      reason:
        'apt refuses a package of Postern that was changed or that another key signed. Without apt, a person has to run the commands that verify a release.',
      vendor: 'Have the device verify its firmware, too.',
    },
    '5.3-10': {
      says: 'An update that comes over the network is verified by a trust relationship, such as a signature.',
      status: 'contributes',
      promises: ['H331', 'H335'],
      reason: 'The promises are about updates of Postern.',
      vendor:
        'Have the device verify its firmware, too. Bring the key to the device in another way than the updates.',
    },
    '5.3-11': {
      says: 'The manufacturer tells the user visibly that a security update is needed, and against which risks.',
      status: "vendor's task",
      vendor: 'Tell the users. SECURITY.md says what an entry about a security fix names.',
    },
    '5.3-12': {
      says: 'The user is told when an update interrupts what the device basically does.',
      status: "vendor's task",
      reason: 'An update restarts Postern, and open connections close.',
      vendor: 'Tell the users before an update.',
    },
    '5.3-13': {
      says: 'The manufacturer publishes clearly for how long there will be support.',
      status: 'contributes',
      promises: ['H334'],
      reason: 'A release names the support period that its vendor gives.',
      vendor: 'Decide on it, and publish it for the device where a buyer looks.',
    },
    '5.3-14': {
      says: 'If a constrained device cannot be updated, it is published why, and how and for how long the hardware is replaced.',
      status: "vendor's task",
      vendor: 'Publish it. A device behind Postern often is such a device.',
    },
    '5.3-15': {
      says: 'A constrained device that cannot be updated can be isolated, and its hardware replaced.',
      status: 'contributes',
      promises: ['H123'],
      reason:
        'The shipped compose file puts the device into a network that only Postern reaches. Other networks are built by hand.',
      vendor: 'Say how to isolate the device. Replace hardware.',
    },
    '5.3-16': {
      says: 'The model of the device can be recognized on its label or through an interface.',
      status: "vendor's task",
      vendor: 'Label the device.',
    },
    '5.4-1': {
      says: 'The device stores sensitive security parameters securely.',
      status: 'contributes',
      promises: ['H74', 'H81', 'H132', 'H225'],
      keys: ['password.file'],
      reason:
        'Tokens are stored as digests, and the files that Postern makes are for their owner alone. The key of the certificate, and a password for a login at the device, lie on the disk in plain text.',
      vendor:
        'Encrypt the disk or keep keys in hardware, if the risk asks for it. Show the same for the firmware.',
    },
    '5.4-2': {
      says: 'An identity that is fixed in the device and used for security resists tampering.',
      status: "vendor's task",
      reason: 'Postern has none.',
      vendor: 'Protect the identity in the hardware.',
    },
    '5.4-3': {
      says: 'The source code of the device has no secret in it.',
      status: "vendor's task",
      reason: 'The operator gives Postern its passwords, and it makes its key at the first start.',
      vendor: 'Look for secrets in the firmware.',
    },
    '5.4-4': {
      says: 'Secrets that protect updates or the connection to a service differ from device to device, and cannot be guessed for many.',
      status: "vendor's task",
      reason: 'Postern makes its key at random where it runs, and updates are verified by a public key.',
      vendor:
        'Copy no `state_dir` to a second device. Give each device such secrets of its own in the firmware, too.',
    },
    '5.5-1': {
      says: 'The device communicates by cryptography that is best practice.',
      status: 'contributes',
      promises: ['H166', 'H217', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.weak',
        'upstream.tls.min_version',
        'upstream.tls.insecure',
      ],
      reason: 'The promises are about the connections of Postern. The device may have others.',
      vendor: `Show the same for them. ${NO_OTHER_WAY}`,
    },
    '5.5-2': {
      says: 'Network and security functions, above all cryptography, are implementations that were reviewed or evaluated.',
      status: 'contributes',
      promises: ['H96', 'H336'],
      reason:
        'Cryptography and TLS are those of OpenSSL in Node.js, which is unchanged if the release was compared with the archives of Node. The reader of HTTP belongs to this project, and is held against an independent one. Nobody outside the project has evaluated it.',
      vendor: 'Have Postern and the firmware reviewed, if the risk asks for it.',
    },
    '5.5-3': {
      says: 'Cryptographic algorithms can be updated.',
      status: 'contributes',
      promises: ['H119', 'H335'],
      reason: 'An upgrade of Postern brings a new OpenSSL. It does not update the firmware.',
      vendor: 'Show the same for the firmware.',
    },
    '5.5-4': {
      says: 'Once the device is set up, its functions are reached over a network only after authentication.',
      status: 'contributes',
      promises: ['C10', 'C12', 'H24', 'H60', 'H152'],
      keys: ['enforce', 'public_paths', 'admin.address', 'admin.password_file'],
      reason:
        'Postern lets no request without a token to the device. Another way to the device has no such check.',
      vendor: NO_OTHER_WAY,
    },
    '5.5-5': {
      says: 'Functions that change the security of the device over a network need authentication, apart from protocols that the network needs.',
      status: 'contributes',
      promises: ['C10', 'C12', 'H24', 'H60', 'H152', 'H153'],
      keys: ['enforce', 'public_paths', 'admin.password_file'],
      reason:
        'Postern lets no request without a token to the device. Another way to the device has no such check.',
      vendor: NO_OTHER_WAY,
    },
    '5.5-6': {
      says: 'Secrets are encrypted on the way, as the risk asks for.',
      status: 'contributes',
      promises: ['H115', 'H166', 'H217', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'tokens.store',
        'store.tls.insecure',
      ],
      reason: 'The promises are about the connections of Postern. The device may send secrets over others.',
      vendor: 'Show the same for them.',
    },
    '5.5-7': {
      says: 'Secrets stay confidential on interfaces that can be reached from afar.',
      status: 'contributes',
      promises: ['H115', 'H166', 'H217', 'H320', 'H353'],
      keys: [
        'listen.tls',
        'admin.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'tokens.store',
        'store.tls.insecure',
      ],
      reason: 'The promises are about the connections of Postern. The device may send secrets over others.',
      vendor: NO_OTHER_WAY,
    },
    '5.5-8': {
      says: 'The manufacturer manages the secrets of the device by a secure process.',
      status: "vendor's task",
      reason: 'docs/data.md lists the keys of Postern and their strength.',
      vendor: 'Manage the keys of releases, repositories and certificates by such a process.',
    },
    '5.6-1': {
      says: 'Network and logical interfaces that nobody uses are off.',
      status: 'contributes',
      promises: ['C23', 'H14', 'H151'],
      keys: ['admin.address'],
      reason:
        'Postern has one port for clients and one for operators, which can be off. The device has interfaces of its own.',
      vendor: `Switch them off. ${NO_OTHER_WAY}`,
    },
    '5.6-2': {
      says: 'Without a login, the network interfaces tell as little as possible that matters for security.',
      status: 'contributes',
      promises: ['C18', 'H306', 'H317'],
      keys: ['enforce', 'public_paths', 'admin.address'],
      reason:
        'Responses of Postern tell nothing of the inside, and `upstream.drop_response` removes fields of the device. The self-signed certificate shows the names and addresses of the machine, unless `listen.tls.names` lists others.',
      vendor: `Look at what public paths show. ${NO_OTHER_WAY}`,
    },
    '5.6-3': {
      says: 'The hardware exposes no physical interface to attack without need.',
      status: "vendor's task",
      vendor: 'Close such interfaces.',
    },
    '5.6-4': {
      says: 'A debug interface that can be touched is disabled in software.',
      status: "vendor's task",
      vendor: 'Disable it.',
    },
    '5.6-4B (V3.1.3)': {
      says: 'A debug interface that is a physical port is protected physically.',
      status: "vendor's task",
      vendor: 'Protect it by the case.',
    },
    '5.6-5': {
      says: 'Only the software services run that the device needs.',
      status: 'contributes',
      promises: ['H122'],
      reason:
        'Postern is one process, and its image holds nothing else. Postern has no part in the other services of the device.',
      vendor: 'Switch the others off.',
    },
    '5.6-6': {
      says: 'There is no more code than the device needs.',
      status: 'contributes',
      promises: ['H122'],
      reason:
        'The image holds one executable and the libraries that it loads. In it, Node.js has parts that Postern does not use.',
      vendor: 'Do the same for the firmware.',
    },
    '5.6-7': {
      says: 'Software runs with the fewest privileges that it needs.',
      status: 'contributes',
      promises: ['H122', 'H124', 'H280', 'H325'],
      reason:
        'The image and the units run Postern as a user without privileges. Started by hand, it has those of its user.',
      vendor: 'Start it as shipped, and do the same for the firmware.',
    },
    '5.6-8': {
      says: 'The hardware controls the access to memory.',
      status: "vendor's task",
      vendor: 'Use such hardware.',
    },
    '5.6-9': {
      says: 'The manufacturer develops the software by a secure process.',
      status: 'contributes',
      promises: ['H333'],
      reason:
        'A release says from which commit, by which builder and with which dependencies it was made. That is a part of such a process.',
      vendor: 'Follow such a process for the firmware and for changes of Postern.',
    },
    '5.7-1': {
      says: 'The device verifies its software by a secure boot.',
      status: "vendor's task",
      reason: 'Postern starts after that.',
      vendor: 'Include Postern and its configuration in what the boot verifies.',
    },
    '5.7-2': {
      says: 'If the software was changed without permission, the device alerts its user and limits its connections.',
      status: "vendor's task",
      reason: 'Postern does not verify its own program once it is installed.',
      vendor: 'Let the operating system verify it, and alert.',
    },
    '5.8-1': {
      says: 'Personal data between the device and a service stays confidential, by cryptography that is best practice.',
      status: 'contributes',
      promises: ['H166', 'H217', 'H353'],
      keys: [
        'listen.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'upstream.tls.weak',
        'upstream.tls.min_version',
      ],
      reason: 'That holds for a service that asks through Postern, not for one that the device itself calls.',
      vendor: 'Show the same for what the device sends.',
    },
    '5.8-2': {
      says: 'Sensitive personal data between the device and its services stays confidential, by cryptography that suits it.',
      status: 'contributes',
      promises: ['H166', 'H217', 'H353'],
      keys: [
        'listen.tls',
        'upstream.url',
        'upstream.tls.insecure',
        'upstream.tls.weak',
        'upstream.tls.min_version',
      ],
      reason: 'That holds for a service that asks through Postern, not for one that the device itself calls.',
      vendor: 'Show the same for what the device sends.',
    },
    '5.8-3': {
      says: 'Everything that the device can sense is documented clearly.',
      status: "vendor's task",
      vendor: 'List the sensors in the manual.',
    },
    '5.9-1': {
      says: 'Device and services withstand outages of networks and of power.',
      status: 'contributes',
      promises: ['C24', 'H46', 'H71', 'H73', 'H131', 'H136'],
      reason:
        'Postern keeps its tokens, and finds the device and the shared store again. Postern has no part in what the device does in an outage.',
      vendor: 'Show the same for the device.',
    },
    '5.9-2': {
      says: 'Without a network the device works on locally, and after a loss of power it recovers cleanly.',
      status: 'contributes',
      promises: ['H71', 'H72', 'H131'],
      reason:
        'Every token works after a kill, and known tokens work without the shared store. The device recovers by itself.',
      vendor: 'Show the same for the device. Start Postern with the machine.',
    },
    '5.9-3': {
      says: 'The device connects to networks in order, and with regard to what they can bear.',
      status: 'contributes',
      promises: ['C25', 'H46', 'H143'],
      reason:
        'Postern tries again with growing pauses, and opens few connections to the device and few questions to the store.',
      vendor: 'Show the same for what the device connects to.',
    },
    '5.10-1': {
      says: 'Telemetry that is collected is examined for signs of an attack.',
      status: 'contributes',
      promises: ['H149', 'H165', 'H291'],
      reason:
        'Postern counts refusals and raises alarms, such as about guessed passwords. A person has to read them.',
      vendor: 'Have the alarms reach a person, and examine what the device reports.',
    },
    '5.11-1': {
      says: 'A user can erase the data of users from the device in a simple way.',
      status: 'contributes',
      promises: ['H102', 'H120', 'H277'],
      reason:
        'Logins can be revoked by address, and a purge of the package leaves no file of Postern. The data of the device stays where it is.',
      vendor: 'Erase the data of the device and that of Postern by one function.',
    },
    '5.11-2': {
      says: 'The user can remove personal data from the services of the device in a simple way.',
      status: "vendor's task",
      reason: 'Postern has no such service.',
      vendor: 'Offer a way to remove the data, in the services or on the device.',
    },
    '5.11-3': {
      says: 'Users are told clearly how to delete their personal data.',
      status: "vendor's task",
      reason: 'docs/data.md says it for Postern.',
      vendor: 'Tell the users of the device how.',
    },
    '5.11-4': {
      says: 'Users get a clear confirmation that their personal data was deleted.',
      status: "vendor's task",
      vendor: 'Confirm the deletion to the user.',
    },
    '5.12-1': {
      says: 'Installation and maintenance ask the user for few decisions, by best practice of usability.',
      status: 'contributes',
      promises: ['H104', 'H105', 'H226'],
      reason:
        '`postern init` asks for the address and the password, and writes the rest. Users were not watched doing it.',
      vendor: 'Ask for nothing where you know the answer.',
    },
    '5.12-2': {
      says: 'The manufacturer tells users how to set the device up securely.',
      status: 'contributes',
      promises: ['H107', 'H224'],
      reason:
        'docs/hardening.md is such a guide for Postern, and `postern check` says how to mend each setting that gives up protection.',
      vendor: 'Write the guide for the device.',
    },
    '5.12-3': {
      says: 'The manufacturer tells users how to check that the device is set up securely.',
      status: 'contributes',
      promises: ['H107', 'H127', 'H224'],
      reason: '`postern check` and `postern verify` check Postern. They do not look at the device itself.',
      vendor: 'Say how to check the rest.',
    },
    '5.13-1': {
      says: 'The software validates what comes in by user interfaces, by APIs, and between networks.',
      status: 'contributes',
      promises: [
        'H1',
        'H6',
        'H7',
        'H8',
        'H20',
        'H22',
        'H24',
        'H27',
        'H28',
        'H31',
        'H40',
        'H51',
        'H96',
        'H303',
        'H190',
      ],
      keys: ['upstream.max_body'],
      reason:
        'Postern validates the HTTP of clients and of the device, and the forms of its own logins. What a body means, only the device knows.',
      vendor: 'Validate in the firmware what bodies, queries and paths mean.',
    },
    '6-1': {
      says: 'The manufacturer tells consumers which personal data is processed by whom, how and why.',
      status: "vendor's task",
      reason: 'docs/data.md lists the personal data that Postern holds: addresses, names and times.',
      vendor: 'Tell the consumers, for example in the privacy notice.',
    },
    '6-2': {
      says: 'Consent to the processing of personal data, where it is needed, is obtained validly.',
      status: "vendor's task",
      vendor: 'Obtain the consent before you process the data.',
    },
    '6-3': {
      says: 'Consumers can withdraw their consent at any time.',
      status: "vendor's task",
      vendor: 'Offer a way to withdraw it.',
    },
    '6-3B (V3.1.3)': {
      says: 'The device can store what was consented to.',
      status: "vendor's task",
      vendor: 'Store the consent on the device.',
    },
    '6-4': {
      says: 'Telemetry has no more personal data than its purpose needs.',
      status: 'contributes',
      promises: ['H79', 'H162', 'H313'],
      reason:
        'Metrics have no addresses, and what is remembered of a request has no query and no body. The log has the whole address of a client.',
      vendor: 'Show the same for the telemetry of the device. Keep logs for as long as you need them.',
    },
    '6-5': {
      says: 'Consumers are told which telemetry is collected, by whom, how it is used and why.',
      status: "vendor's task",
      reason: 'docs/data.md and docs/watching.md say what Postern collects. It sends it to nobody by itself.',
      vendor: 'Tell the consumers, for example in the privacy notice.',
    },
    '6-6 (V3.1.3)': {
      says: 'Personal data on the device and at its services is only what its purpose needs, and is deleted when it is needed no more.',
      status: 'contributes',
      promises: ['H161', 'H162', 'H313'],
      reason:
        'What Postern remembers of requests is bounded and has no query or body. Its log is kept for as long as the machine keeps it.',
      vendor: 'Set how long logs are kept. Show the same for the device.',
    },
    '6-7 (V3.1.3)': {
      says: 'Data that is collected only for a sum is little, is summed early, and is kept for a short time.',
      status: 'contributes',
      promises: ['H79'],
      reason:
        'Postern counts as it goes, and its metrics have no addresses. Postern has no part in what the device sums up.',
      vendor: 'Show the same for what the device collects.',
    },
    '6-8 (V3.1.3)': {
      says: 'Techniques that make personal data anonymous are used where it is processed.',
      status: "vendor's task",
      reason: 'Postern logs and stores the whole address of a client, by which an operator finds who did it.',
      vendor: 'Make the addresses in the log anonymous where you collect it, if you need to.',
    },
  },
}
