import type { Source } from '../../requirement.ts'

/** V6: passwords. */
export const AUTHENTICATION: Source['requirements'] = {
  '6.1.1': {
    says: 'L1: The documentation says what slows guessing down, how it is set, and how nobody can be locked out by it.',
    status: 'contributes',
    promises: ['H181', 'H338'],
    reason:
      'docs/hardening.md and the reference say so, and tests hold the behaviour and the list of keys. No test reads what the sentences say.',
    vendor: 'Say in the manual of the device which settings it is delivered with.',
  },
  '6.1.2': {
    says: 'L2: Words that are easily guessed in this context, such as names of products, are listed to be kept out of passwords.',
    status: "vendor's task",
    vendor: 'List the names of your company, products and projects for those who choose passwords.',
  },
  '6.1.3': {
    says: 'L2: All ways to log in are documented, with the protection that they share.',
    status: 'contributes',
    promises: ['C3', 'H152', 'H190', 'H292'],
    reason: 'The pages of Postern describe its own ways. No test compares the pages with a list of them.',
    vendor: 'Add the ways that the device has itself, such as a console.',
  },
  '6.2.1': {
    says: 'L1: A password has at least 8 characters, better 15.',
    status: 'contributes',
    promises: ['H225', 'H226'],
    keys: ['password.file'],
    reason:
      '`hash-password` and `init` refuse a shorter one without `--weak`. A hash that was made elsewhere does not show its length, and the device may set its own rules.',
    vendor: 'Enforce the length where the password of the device is set.',
  },
  '6.2.2': {
    says: 'L1: Users can change their password.',
    status: "vendor's task",
    reason:
      'Passwords change in their file or at the device. Postern notices it and ends the tokens of the old one (C8).',
    vendor: 'Offer a page or a tool that writes the password file.',
  },
  '6.2.3': {
    says: 'L1: A change of the password asks for the present one.',
    status: "vendor's task",
    vendor: 'Ask for the present password where it is changed.',
  },
  '6.2.4': {
    says: 'L1: A new password is compared with at least 3000 frequent ones.',
    status: 'not met',
    reason: '`hash-password` and `init` compare with fewer than a hundred frequent ones.',
    promises: ['H226'],
    vendor: 'Compare with a long list where the password is set.',
  },
  '6.2.5': {
    says: 'L1: No rule demands or forbids kinds of characters in a password.',
    status: 'met',
    promises: ['H356'],
    vendor: 'With `password.device`, have the firmware do the same.',
  },
  '6.2.6': {
    says: 'L1: The field for the password hides what is typed.',
    status: 'met',
    promises: ['H355'],
  },
  '6.2.7': {
    says: 'L1: The password can be pasted and filled in by a password manager.',
    status: 'met',
    promises: ['H355'],
  },
  '6.2.8': {
    says: 'L1: A password is verified exactly as it was typed, neither cut nor changed.',
    status: 'contributes',
    promises: ['C5', 'H356'],
    keys: ['password.file'],
    reason:
      'Postern passes every byte on. A hash of the kind bcrypt takes 72 bytes into account, and with `password.device` the firmware compares.',
    vendor: 'Use argon2id hashes, as `hash-password` makes them, and test what the firmware compares.',
  },
  '6.2.9': {
    says: 'L2: A password may have 64 characters and more.',
    status: 'met',
    promises: ['H356'],
    vendor: 'With `password.device`, test whether the firmware takes them.',
  },
  '6.2.10': {
    says: 'L2: A password stays valid until it is changed or known to have leaked, and no schedule ends it.',
    status: 'contributes',
    promises: ['C8', 'H234'],
    reason: 'Postern ends no password by its age. It follows the age that the system sets in a shadow file.',
    vendor: 'Set no maximum age in the shadow file.',
  },
  '6.2.11': {
    says: 'L2: The words of 6.1.2 are refused in new passwords.',
    status: 'not met',
    reason: 'The list of refused passwords cannot be extended.',
    promises: ['H226'],
    vendor: 'Refuse them where the password is set.',
  },
  '6.2.12': {
    says: 'L2: A new password is compared with those of known leaks.',
    status: 'not met',
    reason: 'Postern asks no server, and such a list is too large for it.',
    vendor: 'Compare where the password is set.',
  },
  '6.3.1': {
    says: 'L1: Guessing and trying out leaked passwords is hindered as documented.',
    status: 'met if configured',
    promises: ['C13', 'C14', 'H181', 'H190', 'H212', 'H213', 'H138', 'H69', 'H152'],
    keys: ['limits.wrong_passwords', 'limits.oauth.requests', 'limits.store', 'listen.trusted_proxies'],
  },
  '6.3.2': {
    says: 'L1: There is no account that every installation has with the same password.',
    status: 'contributes',
    promises: ['H225', 'H226'],
    reason:
      'Postern brings no account of its own, and warns of usual passwords in plain text. The password is that of the device or of the operator.',
    vendor: 'Ship each device with a password of its own, or have the first user set one.',
  },
  '6.3.3': {
    says: 'L2: A login takes two factors, at level 3 one of them in hardware.',
    status: 'not met',
    reason: 'The device API has a password and nothing else.',
    vendor: 'Let clients connect through a VPN or a proxy that asks for a second factor.',
  },
  '6.3.4': {
    says: 'L2: No way to log in is undocumented, and all are equally strong.',
    status: 'contributes',
    promises: ['C10', 'H152', 'H190', 'H292', 'H308'],
    keys: ['enforce', 'public_paths'],
    reason:
      'The login page follows the rules of the token endpoint. The live page has a password and a bound of its own, and an issued token has no password.',
    vendor: 'Close the ways that the firmware has, such as telnet.',
  },
  '6.3.5': {
    says: 'L3: Users hear of suspicious attempts to log in.',
    status: 'contributes',
    promises: ['H165', 'H291', 'H221'],
    reason:
      'Many wrong passwords are an alarm for the operator. Postern knows no address of users, and does not judge from where they usually log in.',
    vendor: 'Have the alert `PosternPasswordGuessing` reach a person.',
  },
  '6.3.7': {
    says: 'L3: Users hear of changes of their password or account.',
    status: 'not met',
    reason: 'Postern knows no address of users. A changed password is a line of the log.',
    promises: ['C8'],
    vendor: 'Tell the user where the password is changed.',
  },
  '6.3.8': {
    says: 'L3: A failed login does not tell whether the user exists, neither by its answer nor by its time.',
    status: 'met',
    promises: ['H195', 'H308'],
  },
  '6.4.3': {
    says: 'L2: A forgotten password can be reset in a safe way.',
    status: "vendor's task",
    reason: 'Postern has no such way. Whoever may write the password file can set another one.',
    vendor: 'Offer a reset that takes access to the device itself.',
  },
  '6.4.5': {
    says: 'L3: Whoever has a credential that ends is told in time to renew it.',
    status: 'contributes',
    promises: ['H165', 'H295'],
    reason:
      'Alarms say so for issued tokens and certificates. An account with a date in a shadow file ends without one.',
    vendor: 'Have these alerts reach a person.',
  },
  '6.4.6': {
    says: 'L3: An administrator can start the reset of a password, but cannot choose or learn it.',
    status: 'not met',
    reason: 'The operator writes the password file, and so chooses the password.',
  },
  '6.5.6': {
    says: 'L3: A factor that was lost or stolen can be made void.',
    status: 'met if configured',
    promises: ['C8', 'H194', 'H222', 'H234'],
    keys: ['enforce', 'tokens.offline_grace'],
    vendor:
      'With `password.device`, Postern notices a changed password at the next login, or when the device refuses the old one. End the sessions by `postern revoke --all`.',
  },
}
