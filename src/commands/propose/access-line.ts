import { isPasswordName } from '../../config/password-fields.ts'
import { splitAbsolute } from '../../http/request-path.ts'
import { UPGRADE } from '../../http/scope.ts'
import { LONGEST_PATH } from '../../record/access-log.ts'
import { DROPPED } from '../../record/log.ts'

/** A request as its access line has it. */
export interface LoggedRequest {
  /** The name of its login; empty if the login has no name, undefined without a login. */
  readonly name: string | undefined
  /** `UPGRADE` for a WebSocket that was opened. */
  readonly method: string
  /** The path as the log has it, perhaps cut or changed. If the target had the absolute form, only its path. */
  readonly path: string
  /** In ms since the Unix epoch. */
  readonly time: number
  readonly status: number
  /** Postern itself has refused the request. */
  readonly isRefused: boolean
  /** The request was on trial. Without the trial, one of its fields would not have reached the device. */
  readonly hasOverride: boolean
}

/**
 * The kind of a log line: a request to the device, `own`: a request to an endpoint of Postern itself, `dropped`: a sum of dropped lines,
 * `other`: another line of Postern, `foreign`: a line of another program.
 */
type LogLine = LoggedRequest | 'own' | 'dropped' | 'other' | 'foreign'

/** Reads a line. Text before its object is skipped, such as the prefix of `docker compose logs`. No part of the line is trusted. */
export function readLogLine(line: string): LogLine {
  const at = line.indexOf('{')
  if (at < 0) return 'foreign'
  let record: unknown
  try {
    record = JSON.parse(line.slice(at))
  } catch {
    return 'foreign'
  }
  if (typeof record !== 'object' || record === null || !('msg' in record)) return 'foreign'
  if (record.msg === DROPPED) return 'dropped'
  return record.msg === 'request' ? requestIn(record) : 'other'
}

function requestIn(record: object): LogLine {
  const fields = fieldsOf(record)
  const { method, path, status, endpoint, grant, name = '', refusal, would_refuse: would } = fields
  const time = typeof fields.time === 'string' ? Date.parse(fields.time) : Number.NaN
  if (typeof method !== 'string' || typeof path !== 'string' || typeof status !== 'number') return 'other'
  if (Number.isNaN(time) || typeof name !== 'string' || (name !== '' && !isPasswordName(name))) return 'other'
  if (endpoint === 'oauth') return 'own'
  return {
    name: grant === undefined ? undefined : name,
    method: status === 101 ? UPGRADE : method,
    path: path.length > LONGEST_PATH ? path : (splitAbsolute(path)?.target ?? path),
    time,
    status,
    isRefused: refusal !== undefined,
    hasOverride: would === 'insufficient-scope: override',
  }
}

function fieldsOf(record: object): Partial<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(record))
}

/** The part of a path that is as the client sent it. */
export function knownPart(path: string): string {
  return (path.split('?', 1)[0] ?? '').slice(0, LONGEST_PATH)
}
