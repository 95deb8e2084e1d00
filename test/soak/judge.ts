import type { Response } from '../support/message.ts'
import { encodeForm } from '../support/sidecar.ts'
import type { Visitor } from './visitor.ts'

/** Counts a response in the ledger by its status, or as a failure. */
export function judge(visitor: Visitor, name: string, response: Response, right: boolean): void {
  const { ledger } = visitor.context
  if (right) ledger.count(name, String(response.status))
  else
    ledger.fail(
      name,
      `${visitor.transport} ${response.status} ${JSON.stringify(response.fields)} ${response.text.slice(0, 200)}`,
    )
}

/** Whether a response is a refusal of the sidecar in the shape of C18. */
export function isRefusal(response: Response, status: number, code: string): boolean {
  return (
    response.status === status &&
    new RegExp(`^\\{"error":"${code}","error_description":"[A-Z][ -~]*\\."\\}$`).test(response.text) &&
    response.values('content-type').join() === 'application/json;charset=UTF-8'
  )
}

export const asForm = (
  form: Readonly<Record<string, string>>,
): { method: string; fields: string[]; body: string } => ({
  method: 'POST',
  fields: ['Content-Type', 'application/x-www-form-urlencoded'],
  body: encodeForm(form),
})
