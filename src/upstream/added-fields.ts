import { readFile } from 'node:fs/promises'
import type { Fields } from '../http/fields.ts'
import { UpstreamSettingError } from './settings.ts'

/** Printable text: what undici and the device's parser take for one field value. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The fields to set on every forwarded request, the secret ones read from their files. */
export async function readAddedFields(
  headers: Readonly<Record<string, string | { readonly file: string }>>,
): Promise<Fields> {
  const fields: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    fields.push(name, typeof value === 'string' ? value : await readValue(name, value.file))
  }
  return fields
}

async function readValue(name: string, path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UpstreamSettingError(`upstream.headers.${name}: cannot read ${path}: ${error.message}`)
  })
  const value = text.replace(/\r?\n$/, '')
  if (value === '' || !FIELD_VALUE.test(value)) {
    throw new UpstreamSettingError(`upstream.headers.${name}: ${path} must hold one line of printable text`)
  }
  return value
}
