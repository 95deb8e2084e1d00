import type { SessionAccount } from '../config/auth-fields.ts'

const PLACEHOLDER = /\$(user|password)\b/g

/** The content type and the body of a login. `$user` and `$password` stand for the account, in values only. */
export function loginBody({ user = '', session: { login } }: SessionAccount, password: string) {
  const { json, form } = login
  // One pass: a password that contains `$user` stays as it is.
  const filled = (text: string): string =>
    text.replace(PLACEHOLDER, (_, name: string) => (name === 'user' ? user : password))
  if (json !== undefined) {
    const body = JSON.stringify(json, (_, value: unknown) =>
      typeof value === 'string' ? filled(value) : value,
    )
    return { fields: ['Content-Type', 'application/json'], body }
  }
  if (form === undefined) return { fields: [] }
  const pairs = Object.entries(form).map(([name, value]) => [name, filled(value)])
  return {
    fields: ['Content-Type', 'application/x-www-form-urlencoded'],
    body: new URLSearchParams(pairs).toString(),
  }
}
