//! Tests of variables: which setting counts, and what evaluation costs.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::syntax::ast::Operator;

fn set(scope: &mut Scope, n: i64, by: SetBy) {
    scope.set("x", Spanned::new(Expr::Int(n), Span::default()), by).unwrap();
}

/// Removes a setting of which there is another one.
fn unset(scope: &mut Scope) {
    assert!(matches!(scope.unset("x"), Unset::Restored(_)));
}

fn now(scope: &Scope) -> (Expr, SetBy, Option<Expr>) {
    let b = scope.binding("x").unwrap();
    (b.value.node.clone(), b.by, b.without_setting().map(|v| v.node.clone()))
}

#[test]
fn each_word_on_a_variable_can_be_taken_back() {
    let mut scope = Scope::default();
    set(&mut scope, 1, SetBy::Default);
    set(&mut scope, 2, SetBy::Script);
    set(&mut scope, 3, SetBy::Prompt);
    set(&mut scope, 4, SetBy::Prompt);
    set(&mut scope, 5, SetBy::CommandLine);
    assert_eq!(now(&scope), (Expr::Int(5), SetBy::CommandLine, Some(Expr::Int(2))));
    unset(&mut scope);
    assert_eq!(now(&scope), (Expr::Int(4), SetBy::Prompt, Some(Expr::Int(2))));
    unset(&mut scope);
    unset(&mut scope);
    assert_eq!(now(&scope).0, Expr::Int(1));
    assert!(matches!(scope.unset("x"), Unset::Removed));
    assert!(matches!(scope.unset("x"), Unset::Unknown));
}

#[test]
fn a_text_wins_over_the_prompt_and_the_command_line_over_both() {
    let mut scope = Scope::default();
    set(&mut scope, 1, SetBy::Prompt);
    set(&mut scope, 2, SetBy::Script);
    assert_eq!(now(&scope), (Expr::Int(2), SetBy::Script, Some(Expr::Int(2))));
    set(&mut scope, 3, SetBy::CommandLine);
    set(&mut scope, 4, SetBy::Prompt);
    set(&mut scope, 5, SetBy::Script);
    assert_eq!(now(&scope), (Expr::Int(3), SetBy::CommandLine, Some(Expr::Int(5))));
    unset(&mut scope);
    assert_eq!(now(&scope).0, Expr::Int(5));
}

/// `$v0` is 1 and each later variable is the double of the one before, up to `$v26`.
fn doublings() -> Scope {
    let mut scope = Scope::default();
    let at = |node| Spanned::new(node, Span::default());
    let variable = |n: usize| at(Expr::Var(Variable { form: VariableForm::Plain, name: format!("v{n}"), field: None }));
    scope.set("v0", at(Expr::Int(1)), SetBy::Script).unwrap();
    for n in 1..=26 {
        let sum = Expr::Binary(Box::new((variable(n - 1), Operator::Add, variable(n - 1))));
        scope.set(&format!("v{n}"), at(sum), SetBy::Script).unwrap();
    }
    scope
}

#[test]
fn a_chain_of_doublings_costs_a_step_each() {
    let scope = doublings();
    let value = || scope.value("v26").unwrap().unwrap();
    assert_eq!(value(), ModelValue::Int(1 << 26));
    let steps = scope.spent();
    assert!((26..=27).contains(&steps), "{steps}");
    assert_eq!((value(), scope.spent()), (ModelValue::Int(1 << 26), steps), "it is known");
}

#[test]
fn a_local_variable_is_meant_in_each_form_but_for_internal_values() {
    let mut scope = Scope::default();
    set(&mut scope, 1, SetBy::Script);
    scope.set_internal("rate", "5".to_owned());
    let number = |n| Spanned::new(Expr::Int(n), Span::default());
    let values = vec![("x".to_owned(), number(2)), ("rate".to_owned(), number(7))];
    let locals = Locals { values, outer: &scope };
    let value = |form, name: &str| {
        let variable = Variable { form, name: name.to_owned(), field: None };
        locals.value_of(&variable, Arithmetic::Whole).unwrap().unwrap().print()
    };
    for form in [VariableForm::Plain, VariableForm::Paren, VariableForm::Brace] {
        assert_eq!(value(form, "x"), "2", "{form:?}");
    }
    assert_eq!((value(VariableForm::Plain, "rate"), value(VariableForm::Brace, "rate")), ("7".into(), "5".into()));
}

#[test]
fn a_text_longer_than_64_kib_is_an_error() {
    let mut scope = Scope::default();
    let text = |part: &str, n: usize| Spanned::new(Expr::Text(vec![TextPart::Text(part.repeat(n))]), Span::default());
    scope.set("short", text("a", expr::LONGEST_TEXT), SetBy::Script).unwrap();
    scope.set("long", text("a", expr::LONGEST_TEXT + 1), SetBy::Script).unwrap();
    assert!(scope.value("short").unwrap().is_ok());
    assert_eq!(scope.value("long").unwrap().unwrap_err().code, Code::BadExpression);
}

#[test]
fn a_field_of_a_variable_that_is_not_random_is_text_in_a_text() {
    let mut scope = Scope::default();
    let at = |start| Span { start, end: start + 1, ..Span::default() };
    let field = Variable { form: VariableForm::Plain, name: "x".to_owned(), field: Some("min".to_owned()) };
    let part = || TextPart::Variable(Spanned::new(field.clone(), at(4)));
    let text = Spanned::new(Expr::Text(vec![part()]), at(4));
    let alone = Spanned::new(Expr::Var(field.clone()), at(7));
    assert_eq!(expr::eval(&text, &scope).unwrap_err().code, Code::UndefinedVariable);
    scope.set("x", Spanned::new(Expr::Int(5), at(1)), SetBy::Script).unwrap();
    assert_eq!(expr::eval(&text, &scope).unwrap().print(), "5.min");
    let error = expr::eval(&alone, &scope).unwrap_err();
    assert_eq!((error.code, error.primary.span), (Code::WrongType, at(7)));
    let fields = vec![(Spanned::new("min".to_owned(), at(1)), Spanned::new(Expr::Int(3), at(1)))];
    scope.set("x", Spanned::new(expr::randvar(at(1), fields), at(1)), SetBy::Script).unwrap();
    assert_eq!(expr::eval(&text, &scope).unwrap().print(), "3");
}
