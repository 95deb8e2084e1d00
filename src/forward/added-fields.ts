import { readFile } from 'node:fs/promises'
import type { ServiceConfig } from '../config/upstream-fields.ts'
import type { Fields } from '../http/fields.ts'
import { reasonOf } from '../system/node-permission.ts'
import { SetupError } from '../system/setup-error.ts'
import type { RequestFieldSettings } from './request-fields.ts'
import { upstreamHost } from './settings.ts'

/** Printable text, which every reader takes for one field value. */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/**
 * What every request to a service carries, whoever sent it; `key` is where the service stands in the configuration, for
 * messages.
 */
export async function readRequestFields(service: ServiceConfig, key: string): Promise<RequestFieldSettings> {
  return { host: upstreamHost(service), added: await readAddedFields(service.headers, `${key}.headers`) }
}

/** The fields to set on every forwarded request, the secret ones read from their files. */
async function readAddedFields(
  headers: Readonly<Record<string, string | { readonly file: string }>>,
  key: string,
): Promise<Fields> {
  const fields: string[] = []
  for (const [name, value] of Object.entries(headers)) {
    fields.push(name, typeof value === 'string' ? value : await readValue(`${key}.${name}`, value.file))
  }
  return fields
}

async function readValue(key: string, path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new SetupError(`${key}: cannot read ${path}: ${reasonOf(error)}`)
  })
  const value = text.replace(/\r?\n$/, '')
  if (value === '' || !FIELD_VALUE.test(value)) {
    throw new SetupError(`${key}: ${path} must hold one line of printable text`)
  }
  return value
}
