import type { Source } from '../../requirement.ts'

/** V7: the sessions of browsers, and the logins of programs. */
export const SESSIONS: Source['requirements'] = {
  '7.1.1': {
    says: 'L2: The documentation gives the times after which a session ends, idle or at the latest, and justifies them.',
    status: 'contributes',
    promises: ['H310', 'H311', 'H338'],
    reason:
      'The reference and docs/browsers.md give the times. They are not justified against NIST SP 800-63B.',
    vendor: 'Justify the times for your device, or shorten them.',
  },
  '7.1.2': {
    says: 'L2: The documentation says how many sessions an account may have at a time, and what happens beyond.',
    status: 'contributes',
    promises: ['H188', 'H206', 'H338'],
    reason: 'The number is documented for all accounts together. There is none for each account.',
    vendor: 'Say in your manual whether that suits the device.',
  },
  '7.2.1': {
    says: 'L1: Sessions and tokens are verified on the server.',
    status: 'met if configured',
    promises: ['C10', 'C12', 'H188', 'H152'],
    keys: ['enforce', 'public_paths'],
  },
  '7.2.2': {
    says: 'L1: Tokens are made for each session, in place of fixed keys of an API.',
    status: 'met if configured',
    promises: ['C4', 'C7', 'H188', 'H293'],
    keys: ['tokens.issued'],
  },
  '7.2.3': {
    says: 'L1: A token is unique, has at least 128 bits, and comes from a generator for cryptography.',
    status: 'met',
    promises: ['C4', 'H188', 'H152'],
  },
  '7.2.4': {
    says: 'L1: Each login makes a new session and ends the one before.',
    status: 'contributes',
    promises: ['C4', 'H188', 'H219'],
    keys: ['oauth.revocation_path'],
    reason:
      'That is so for browsers. A program that logs in again gets new tokens, but its earlier ones stay valid, because the device API knows no clients.',
    vendor: 'Have client programs revoke what they no longer need: `oauth.revocation_path`.',
  },
  '7.3.1': {
    says: 'L2: A session that is not used ends after a time that was decided by risk.',
    status: 'met if configured',
    promises: ['H310', 'C7', 'C10', 'H152'],
    keys: ['enforce', 'public_paths', 'browser.idle', 'tokens.refresh_lifetime', 'tokens.issued'],
    vendor: 'Decide these times for your device.',
  },
  '7.3.2': {
    says: 'L2: A session ends at the latest after a time that was decided by risk, however it is used.',
    status: 'met if configured',
    promises: ['C6', 'C7', 'C10', 'H310', 'H311', 'H152'],
    keys: ['enforce', 'public_paths', 'tokens.refresh_lifetime', 'tokens.grant_lifetime', 'tokens.issued'],
    vendor: 'Decide these times for your device.',
  },
  '7.4.1': {
    says: 'L1: A session that has ended, by logout or by time, cannot be used any more.',
    status: 'met if configured',
    promises: ['C7', 'C8', 'C10', 'H102', 'H188', 'H206', 'H210', 'H152', 'H129', 'H311'],
    keys: ['enforce', 'public_paths', 'tokens.offline_grace'],
    vendor:
      'In a fleet, a sidecar that cannot reach the shared store takes a revoked token for `tokens.offline_grace`. Keep that short.',
  },
  '7.4.2': {
    says: 'L1: All sessions of an account end when it is locked or removed.',
    status: 'contributes',
    promises: ['H194', 'H196', 'H234'],
    keys: ['enforce'],
    reason:
      'They end with an account of an htpasswd or shadow file that is locked, expired or gone, and with a removed name. A `password.file` that is emptied or removed keeps its last password.',
    vendor: 'To lock out everyone with `password.file`, write another password into it.',
  },
  '7.4.3': {
    says: 'L2: After a change of the password all other sessions can be ended.',
    status: 'met if configured',
    promises: ['C8', 'H67', 'H194', 'H222'],
    keys: ['enforce', 'tokens.offline_grace'],
    vendor:
      'With `password.device`, Postern notices a changed password at the next login, or when the device refuses the old one. End the sessions by `postern revoke --all`.',
  },
  '7.4.4': {
    says: 'L2: Each page behind the login shows a way to log out.',
    status: 'not met',
    reason: 'The pages are those of the device, and Postern does not change them. `/oauth/logout` logs out.',
    promises: ['H188'],
    vendor: 'Link `/oauth/logout` on the pages of the device.',
  },
  '7.4.5': {
    says: 'L2: Administrators can end the sessions of one user or of all.',
    status: 'met if configured',
    promises: ['H159', 'H222', 'H129', 'H194'],
    keys: ['enforce', 'tokens.offline_grace'],
    vendor:
      'In a fleet, a sidecar that cannot reach the shared store misses it for `tokens.offline_grace` at most. Keep that short.',
  },
  '7.5.1': {
    says: 'L2: A change of what a login or its recovery relies on asks for a login again.',
    status: "vendor's task",
    reason: 'Postern has no such settings of users.',
    vendor: 'Ask for the password again where the device has such settings.',
  },
  '7.5.2': {
    says: 'L2: Users see their own sessions, and end them after a login again.',
    status: 'not met',
    reason: 'Only the operator sees the sessions. A client can end the login whose token it shows.',
    promises: ['H159'],
  },
  '7.5.3': {
    says: 'L3: A very sensitive operation asks for one more proof.',
    status: 'not met',
    reason: 'A login is good for all that its name may do, until it ends.',
    promises: ['H193'],
    vendor: 'Give such operations to a password of their own, or ask again in the firmware.',
  },
  '7.6.2': {
    says: 'L2: No session begins unless the user does something for it.',
    status: 'met',
    promises: ['H189', 'H153'],
  },
}
