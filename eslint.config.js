import js from '@eslint/js';
import globals from 'globals';

const COMPONENT = ['element', 'props', 'settings', 'server', 'trigger', 'watch', 'Plotly', 'REPORT', 'panel'];  // ui/js/component.d.ts
const MARKUP = ['innerHTML', 'outerHTML', 'srcdoc', 'insertAdjacentHTML', 'setHTMLUnsafe', 'createContextualFragment'];

export default [
  { ignores: ['ui/bundle/', 'build/', 'dist/', 'tests/browser/'] },
  js.configs.recommended,
  { rules: { eqeqeq: ['error', 'always', { null: 'ignore' }], 'no-eval': 'error', 'no-implied-eval': 'error', 'no-unused-vars': ['error', { ignoreRestSiblings: true }], 'no-var': 'error', 'prefer-const': 'error' } },
  {
    files: ['ui/**/*.js'],
    languageOptions: { globals: { ...globals.browser, ...Object.fromEntries(COMPONENT.map(name => [name, 'readonly'])) } },
    rules: {
      // Text from elsewhere reaches the document as text nodes only.
      'no-restricted-properties': ['error', ...MARKUP.map(property => ({ property })), { object: 'document', property: 'write' }],
    },
  },
  { files: ['tools/*.js', 'tests/js/*.js'], languageOptions: { globals: globals.node } },
];
