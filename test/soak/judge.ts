import type { Response } from '../support/message.ts'
import { encodeForm } from '../support/sidecar.ts'
import type { Visitor } from './visitor.ts'

/** Enters an answer into the ledger: as what it is, or as a failure. */
export function judge(visitor: Visitor, name: string, answer: Response, right: boolean): void {
  const { ledger } = visitor.house
  if (right) ledger.count(name, String(answer.status))
  else
    ledger.fail(
      name,
      `${visitor.transport} ${answer.status} ${JSON.stringify(answer.fields)} ${answer.text.slice(0, 200)}`,
    )
}

/** C18: the shape of every answer of the sidecar's own. */
export function isRefusal(answer: Response, status: number, code: string): boolean {
  return (
    answer.status === status &&
    new RegExp(`^\\{"error":"${code}","error_description":"[A-Z][ -~]*\\."\\}$`).test(answer.text) &&
    answer.values('content-type').join() === 'application/json;charset=UTF-8'
  )
}

export const asForm = (
  form: Readonly<Record<string, string>>,
): { method: string; fields: string[]; body: string } => ({
  method: 'POST',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm(form),
})
