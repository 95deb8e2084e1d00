import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryDirectory } from './certificate.ts'

/** The password of the live page in tests. */
export const PAGE_PASSWORD = 'a page & its password'

/** A file with it, for `admin.password_file`. */
export function pagePasswordFile(): string {
  const file = join(temporaryDirectory(), 'page-password')
  writeFileSync(file, `${PAGE_PASSWORD}\n`, { mode: 0o600 })
  return file
}

/** Signs in to the live page, and resolves with the value for `Cookie`. */
export async function pageCookie(adminUrl: string): Promise<string> {
  const { headers } = await fetch(`${adminUrl}/page/login`, {
    method: 'POST',
    headers: { Origin: adminUrl },
    body: new URLSearchParams({ password: PAGE_PASSWORD }),
    redirect: 'manual',
  })
  return headers.get('set-cookie')?.split(';')[0] ?? ''
}
