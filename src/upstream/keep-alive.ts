import { fieldValues } from '../http/fields.ts'
import { type AnswerHead, endsWithHead } from './answer-head.ts'
import { type DeviceRequest, mayFollow } from './request-head.ts'
import type { Reuse } from './target.ts'

const TIMEOUT = /timeout=(\d+)/

/** Whether the connection may carry another request behind this answer, as far as the two heads tell. */
export function staysOpen(
  request: DeviceRequest,
  { keepsAlive, status, fields }: AnswerHead,
  reuse: Reuse,
): boolean {
  if (!keepsAlive || !mayFollow(request, reuse)) return false
  if (!endsWithHead(request.method, status)) return true
  // Firmware that announces a body where there is none may well send one.
  const lengths = fieldValues(fields, 'content-length')
  return fieldValues(fields, 'transfer-encoding').length === 0 && !lengths.some(Number)
}

/** How long (ms) the device says that it keeps the connection, if it does. */
export function namedTimeout({ fields }: AnswerHead): number | undefined {
  const seconds = TIMEOUT.exec(fieldValues(fields, 'keep-alive').join())?.[1]
  return seconds === undefined ? undefined : Number(seconds) * 1000
}
