import { join } from 'node:path'
import { TROUBLES } from '../record/troubles.ts'
import { causeOf, reasonOf } from '../system/setup-error.ts'
import { DATABASE } from './journal-database.ts'
import { JOURNAL_OPERATIONS, type JournalListener } from './journal-records.ts'
import type { Outlets } from './state-events.ts'

/** The `operation` of a file that is set aside, beside those of the journal. */
const SETTING_ASIDE = 'set_aside'

const { PosternTokenFileBroken: BROKEN, PosternTokensUnsaved: UNSAVED } = TROUBLES
const SET_ASIDE_UNREAD =
  'token file: set aside, because it could not be opened at the start and its tokens are unknown; they have to log in again'
/** After a failed flush the file stays in use. */
const NOT_FLUSHED = {
  line: 'token file: could not be flushed; a power cut may lose the latest tokens',
  remedy: undefined,
}
const IS_COPY =
  'token file: it is a copy, such as a restored backup: tokens that were revoked after the copy was made are valid again'
const COPIED_REMEDY = 'postern revoke --all, unless the folder was only moved'
const CLOCK_SET =
  'the clock was set: tokens of this run keep their age, those of the token file are judged by the new time'
const CLOCK_BEHIND =
  'the clock is behind the last known time: tokens expire by that time until the clock is set'

/**
 * Counts and logs what happens to the token file in this folder. The journal retries every five seconds while the file fails. Each failure
 * is counted, and only the first one with the same message and reason is logged until the file works again.
 */
export function journalLog(stateDir: string, { log, metrics }: Outlets): JournalListener {
  const path = join(stateDir, DATABASE)
  /** The messages and reasons that were logged since the file last worked. */
  const logged = new Set<string>()
  metrics.storeOpened('file', [...JOURNAL_OPERATIONS, SETTING_ASIDE])

  return {
    failed(operation, error) {
      metrics.storeFailed('file', operation)
      const { line: message, remedy } = operation === 'flush' ? NOT_FLUSHED : UNSAVED
      const reason = reasonOf(error)
      const fault = `${message}: ${reason}`
      if (logged.has(fault)) return
      logged.add(fault)
      log.error({ path, operation, remedy, ...causeOf(error) }, message)
    },
    recovered() {
      logged.clear()
      log.info('token file: complete again')
    },
    copied: () => log.warn({ path: stateDir, remedy: COPIED_REMEDY }, IS_COPY),
    clock(event, ms) {
      const seconds = Math.round(ms / 1000)
      if (event === 'set') log.info({ seconds }, CLOCK_SET)
      else log.warn({ seconds }, CLOCK_BEHIND)
    },
    setAside(fault, to) {
      metrics.storeFailed('file', SETTING_ASIDE)
      const message = fault === 'unread' ? SET_ASIDE_UNREAD : BROKEN.line
      log.error({ fault, path: to, remedy: BROKEN.remedy }, message)
    },
  }
}
