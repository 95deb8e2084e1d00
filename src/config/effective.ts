import { type Field, fieldBelow } from './field.ts'
import { schema } from './schema.ts'
import { tokenStoreField } from './store-fields.ts'
import { isMapping, type YamlValue } from './yaml.ts'

const MASK = '***'

/**
 * The effective configuration in the form of the file: each key that is set, as it is written, and the defaults of all others. It loads as
 * the same configuration, except for the masked secrets: the values of `upstream.headers`, and the password in the URL of a shared store.
 */
export function effectiveTree(tree: YamlValue, field: Field<unknown> = schema): YamlValue {
  if (field === tokenStoreField) return String(tree).replace(/(:\/\/[^:@/]*:)[^@/]+@/, `$1${MASK}@`)
  if (!isMapping(tree)) return tree
  if (field.kind === 'headers') {
    // The path of a secret is not secret.
    const isShown = (value: YamlValue): boolean => !field.secret || value === null || isMapping(value)
    const shown = Object.entries(tree).map(([name, value]) => [name, isShown(value) ? value : MASK])
    return Object.fromEntries(shown)
  }
  if (field.kind === 'value') return tree
  const keys = field.kind === 'named' ? Object.keys(tree) : field.keys.keys()
  const whole: Record<string, YamlValue> = {}
  for (const key of keys) {
    const inner = fieldBelow(field, key)
    const value = Object.hasOwn(tree, key) || inner?.optional ? tree[key] : inner?.default
    if (inner === undefined || value === undefined) continue
    const shown = effectiveTree(value, inner)
    // A section is left out if none of its keys is set or has a default.
    const isEmpty = inner.kind === 'section' && isMapping(shown) && Object.keys(shown).length === 0
    if (!isEmpty) whole[key] = shown
  }
  return whole
}
