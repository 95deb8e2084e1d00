import type { Source } from '../../requirement.ts'

/** V16: the log, and what happens when something fails. */
export const LOGGING: Source['requirements'] = {
  '16.1.1': {
    says: 'L2: A list says what each part logs, where and for how long it is kept, and who may read it.',
    status: 'contributes',
    promises: ['H354'],
    reason:
      'docs/data.md has the part of Postern. Where the lines go and for how long is set in journald or Docker.',
    vendor: 'Write that list for the whole device.',
  },
  '16.2.1': {
    says: 'L2: Each entry says when, where, who and what.',
    status: 'contributes',
    promises: ['H354', 'H197', 'H222'],
    keys: ['log.level', 'log.access', 'log.format'],
    reason:
      'Each line has its time and event, and that of a request its client and login. A revocation by an operator names the login that ended, and not the person who typed the command.',
    vendor: 'Have operators work under accounts of their own, whose commands the system logs.',
  },
  '16.2.2': {
    says: 'L2: Clocks are synchronized, and times are in UTC or have their offset.',
    status: 'contributes',
    promises: ['H354'],
    keys: ['log.format'],
    reason:
      'Times of JSON are in UTC, those of `log.format: pretty` in local time without a date. The clock is that of the machine.',
    vendor: 'Synchronize the clocks of machine and device.',
  },
  '16.2.3': {
    says: 'L2: The log goes only where the list of 16.1.1 says.',
    status: "vendor's task",
    reason:
      'Postern writes it to standard output only. Where it goes from there is set in journald or Docker.',
    vendor: 'Send the log where your list says, and nowhere else.',
  },
  '16.2.4': {
    says: 'L2: A program can read and correlate the log.',
    status: 'met if configured',
    promises: ['C22', 'H82', 'H314', 'H354'],
    keys: ['log.format'],
  },
  '16.2.5': {
    says: 'L2: What is sensitive is left out of the log, or shortened, by how much protection it needs.',
    status: 'met',
    promises: ['C9', 'H81', 'H137', 'H170', 'H272', 'H313'],
    vendor: 'Paths are logged: keep secrets and personal data out of them.',
  },
  '16.3.1': {
    says: 'L2: Every login is logged, whether it succeeds or fails, with its kind.',
    status: 'contributes',
    promises: ['H221', 'H222', 'H292', 'H308', 'H354', 'H152'],
    keys: ['log.level', 'log.access'],
    reason:
      'Each login of a client has a line, except in a flood of refusals: beyond ten of a client in ten seconds they are summed up. The line does not tell a password from a refresh token. Of the live page, the first and the tenth failed login of a minute have one.',
    vendor: 'Keep the metrics, too: they count each login that failed.',
  },
  '16.3.2': {
    says: 'L2: Every refused access is logged, at level 3 every decision.',
    status: 'contributes',
    promises: ['H193', 'H221', 'H354'],
    keys: ['log.level', 'log.access'],
    reason:
      'Each of a client has a line, except in a flood of refusals, which is summed up. Of the admin listener, only failed logins and unknown host names have one. What the device refuses shows by its status only.',
    vendor: 'Log in the firmware what it refuses.',
  },
  '16.3.3': {
    says: 'L2: Documented events of security are logged, and so are attempts to get around a protection.',
    status: 'contributes',
    promises: ['H149', 'H182', 'H221', 'H222'],
    keys: ['log.level', 'log.access'],
    reason:
      'Refusals, revocations and bugs have lines, floods are summed up. Bytes that are no valid request are counted in the metrics, and have no line.',
    vendor: 'Log in the firmware what happens behind Postern.',
  },
  '16.3.4': {
    says: 'L2: Unexpected errors and failures of protection, such as of TLS to the device, are logged.',
    status: 'met if configured',
    promises: ['C20', 'H109', 'H137', 'H139', 'H149', 'H167', 'H223'],
    keys: ['log.level'],
  },
  '16.4.1': {
    says: 'L2: No content can forge a line of the log.',
    status: 'met',
    promises: ['H82'],
  },
  '16.4.2': {
    says: 'L2: The log is protected from unauthorized readers and from changes.',
    status: "vendor's task",
    reason: 'Postern writes to standard output and keeps no file.',
    vendor: 'Protect the journal of the machine.',
  },
  '16.4.3': {
    says: 'L2: The log is sent to another system, which watches it.',
    status: "vendor's task",
    reason: 'Postern writes to standard output.',
    vendor: 'Send the journal to such a system, encrypted.',
  },
  '16.5.1': {
    says: 'L2: An unexpected error gives the client a general message, without anything of the inside.',
    status: 'contributes',
    promises: ['C18', 'H149', 'H317'],
    reason: 'That holds for the errors of Postern. Those of the device pass as they are.',
    vendor: 'Have the firmware show no traces and queries.',
  },
  '16.5.2': {
    says: 'L2: The application goes on in a safe way when something that it needs fails.',
    status: 'met if configured',
    promises: ['C25', 'H46', 'H55', 'H73', 'H75', 'H131', 'H139'],
    keys: ['tokens.offline_grace'],
    vendor:
      'In a fleet, a sidecar that cannot reach the shared store takes a revoked token for `tokens.offline_grace`. Keep that short.',
  },
  '16.5.3': {
    says: 'L2: An error never lets a request pass that would have been refused.',
    status: 'contributes',
    promises: ['C12', 'H75', 'H131', 'H139', 'H149'],
    keys: ['enforce', 'tokens.offline_grace'],
    reason:
      'That holds for one sidecar. In a fleet whose shared store does not answer, each sidecar counts alone, and takes a token that was revoked meanwhile for `tokens.offline_grace`.',
    vendor: 'In a fleet, keep `tokens.offline_grace` short, and have the shared store watched.',
  },
  '16.5.4': {
    says: 'L3: A last handler catches every error, logs it, and keeps the process alive.',
    status: 'met if configured',
    promises: ['C20'],
    keys: ['log.level'],
  },
}
