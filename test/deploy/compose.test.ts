import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const DEPLOY = join(import.meta.dirname, '../../deploy')
const compose = parse(readFileSync(join(DEPLOY, 'compose.yaml'), 'utf8'))

/** The published schema: github.com/compose-spec/compose-spec, schema/compose-spec.json of 2026-06-23 (Apache-2.0). */
const { $schema: _, ...schema } = JSON.parse(
  readFileSync(join(import.meta.dirname, 'compose-spec.json'), 'utf8'),
)
const validate = new Ajv({ strict: false, validateFormats: false, allErrors: true }).compile(schema)

test('H123 compose.yaml is valid by the published schema, which refuses an unknown key', () => {
  validate(compose)
  expect(validate.errors).toBe(null)
  const wrong = structuredClone(compose)
  wrong.services.postern.read_onyl = true
  expect(validate(wrong)).toBe(false)
})

test('H123 compose.yaml names only files of deploy/, and the password that the operator makes', () => {
  const services: readonly { readonly volumes?: readonly string[] }[] = Object.values(compose.services)
  const mounted = services.flatMap(({ volumes = [] }) => volumes.map((volume) => volume.split(':')[0] ?? ''))
  const files = mounted.filter((source) => source.startsWith('./'))
  expect(files.length).toBeGreaterThan(2)
  expect(files.filter((file) => !existsSync(join(DEPLOY, file)))).toEqual([])
  const { context, dockerfile } = compose.services.postern.build
  expect(existsSync(join(DEPLOY, context, dockerfile))).toBe(true)
  const named = mounted.filter((source) => !source.startsWith('./'))
  expect(named.toSorted()).toEqual(Object.keys(compose.volumes).toSorted())
  expect(compose.secrets).toEqual({ password: { file: './password' } })
  const ignored = readFileSync(join(DEPLOY, '../.gitignore'), 'utf8').split('\n')
  expect(ignored).toEqual(expect.arrayContaining(['/deploy/password', '/deploy/kubernetes/password']))
})

test('H123 only Postern reaches the device, and only the host reaches the metrics', () => {
  const { postern, device, prometheus } = compose.services
  expect(device.networks).toEqual(['device'])
  expect(compose.networks.device).toEqual({ internal: true })
  expect(device.ports).toBe(undefined)
  expect(prometheus.network_mode).toBe('service:postern')
  expect(postern.ports).toEqual(['8443:8443', '127.0.0.1:9090:9090'])
})
