import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { COMMON_KEYS, listedKeys, referencePage, referenceSchema } from '../../deploy/build/reference.ts'
import { shippedConfiguration } from '../../src/config/first-configuration.ts'
import { dottedKeys, environmentName, knownKeys } from '../../src/config/known-keys.ts'
import { valueAt } from '../../src/config/yaml.ts'

const committed = (name: string): string =>
  readFileSync(new URL(`../../deploy/${name}`, import.meta.url), 'utf8')

describe('the reference', () => {
  it('is up to date; `npm run reference` writes it', () => {
    expect(committed('configuration.md')).toBe(referencePage())
    expect(committed('postern.schema.json')).toBe(referenceSchema())
    expect(committed('postern.yaml')).toBe(shippedConfiguration())
  })

  it('has an entry with its type and variable for every key that is no section', () => {
    const page = referencePage()
    for (const { path, field } of knownKeys().filter((known) => known.field.keys.size === 0)) {
      const [, entry = ''] = page.split(`\n### \`${path.join('.')}\`\n`)
      expect(entry.split('\n#')[0]).toContain(`\n- Type: ${field.type}\n`)
      expect(entry.split('\n#')[0]).toContain(`\n- Environment: \`${environmentName(path)}\`\n`)
    }
  })

  it('has only lines that a terminal shows unbroken', () => {
    const page = referencePage().split('\n')
    expect(page.filter((line) => line.length > 160)).toEqual([])
  })

  it('marks exactly the required keys', () => {
    const required = referencePage()
      .split('\n### ')
      .filter((entry) => entry.includes('**required**'))
    expect(required.map((entry) => entry.split('\n')[0])).toEqual(['`upstream.url`'])
  })

  it('H338 lists every key, each with a sentence, and nothing else', () => {
    const schema = referenceSchema()
    for (const [key, { means }] of listedKeys) expect(means, key).toMatch(/^[A-Z`].*\.$/)
    for (const [key, { means }] of listedKeys) expect(schema, key).toContain(JSON.stringify(means))
    expect([...listedKeys.keys()].filter((key) => !key.includes('[]'))).toEqual(dottedKeys())
  })

  it('begins with the keys that people set, each with an example', () => {
    const [, page = ''] = referencePage().split('\n## The keys that people set\n')
    const blocks = [...(page.split('\n## ')[0]?.matchAll(/```yaml\n(.*)\n```/g) ?? [])].map(
      ([, yaml = '']) => yaml,
    )
    expect(COMMON_KEYS).toHaveLength(25)
    expect(blocks).toHaveLength(25)
    for (const [index, key] of COMMON_KEYS.entries())
      expect(valueAt(parse(blocks[index] ?? ''), key.split('.')), key).toEqual(listedKeys.get(key)?.example)
  })

  it('has at most 130 entries, one for each key that holds a value', () => {
    expect(referencePage().match(/^### /gm)?.length).toBeLessThanOrEqual(130)
  })

  it('has the same keys as the JSON Schema', () => {
    const schema: unknown = JSON.parse(referenceSchema())
    expect(keysOf(schema).sort()).toEqual([...dottedKeys()].sort())
    expect(schema).toMatchObject({
      $schema: 'http://json-schema.org/draft-07/schema#',
      additionalProperties: false,
      oneOf: [{ required: ['password'] }, { required: ['passwords'] }],
      properties: {
        limits: {
          properties: { api: { properties: { requests: { type: 'integer', minimum: 1, default: 60 } } } },
        },
        log: { properties: { level: { enum: expect.arrayContaining(['info', 'silent']) } } },
        password: { minProperties: 1, maxProperties: 1 },
        upstream: { required: ['url'] },
      },
    })
  })
})

/** The dotted names of all properties, in every alternative, but not below keys with free names. */
function keysOf(schema: unknown, above = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return []
  const nested =
    'anyOf' in schema && Array.isArray(schema.anyOf)
      ? schema.anyOf.flatMap((each) => keysOf(each, above))
      : []
  const properties = 'properties' in schema ? Object.entries(schema.properties ?? {}) : []
  return [
    ...nested,
    ...properties.flatMap(([key, each]) => [`${above}${key}`, ...keysOf(each, `${above}${key}.`)]),
  ]
}
