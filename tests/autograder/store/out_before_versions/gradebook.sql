BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('e43177bfe90b');
CREATE TABLE assignment (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	duedate DATETIME, 
	course_id VARCHAR(128) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name), 
	FOREIGN KEY(course_id) REFERENCES course (id)
);
INSERT INTO "assignment" VALUES('84fb375f95a440859ca54b7a08b853fd','lab05_accumulation',NULL,'default_course');
CREATE TABLE base_cell (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	notebook_id VARCHAR(32) NOT NULL, 
	type VARCHAR(50), 
	PRIMARY KEY (id), 
	UNIQUE (name, notebook_id, type), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
INSERT INTO "base_cell" VALUES('68960c5f74de4ce4ba003d37b94bdb87','lab05-double-check','0c37d25a97ef429c8e7077ebf6182118','GradeCell');
INSERT INTO "base_cell" VALUES('23701fca8f7041eb929dbdacc251a774','lab05-double','0c37d25a97ef429c8e7077ebf6182118','GradeCell');
INSERT INTO "base_cell" VALUES('bdda51d6dc07478594d11213de15920e','lab05-halve','0c37d25a97ef429c8e7077ebf6182118','GradeCell');
INSERT INTO "base_cell" VALUES('b15cb5700cc34cf59f2d617aaff0080f','lab05-explain','0c37d25a97ef429c8e7077ebf6182118','GradeCell');
INSERT INTO "base_cell" VALUES('4a5e452afb31423da69cd60c88d049db','lab05-double-solution','0c37d25a97ef429c8e7077ebf6182118','SolutionCell');
INSERT INTO "base_cell" VALUES('4443b66b0c864f5c9a4e9165faa850a4','lab05-halve-solution','0c37d25a97ef429c8e7077ebf6182118','SolutionCell');
INSERT INTO "base_cell" VALUES('65e15c9248004ab6b0fd6831b3736a02','lab05-explain','0c37d25a97ef429c8e7077ebf6182118','SolutionCell');
CREATE TABLE comment (
	id VARCHAR(32) NOT NULL, 
	notebook_id VARCHAR(32), 
	cell_id VARCHAR(32), 
	auto_comment TEXT, 
	manual_comment TEXT, 
	PRIMARY KEY (id), 
	UNIQUE (cell_id, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES submitted_notebook (id), 
	FOREIGN KEY(cell_id) REFERENCES base_cell (id)
);
INSERT INTO "comment" VALUES('c31bceb475864a20ad43b513f0b8f004','e273fc69cf75498abee27b8ab61eea54','4a5e452afb31423da69cd60c88d049db','2 of 2 points. Right.',NULL);
INSERT INTO "comment" VALUES('d130cbb593a24cffad9909edff30135f','e273fc69cf75498abee27b8ab61eea54','4443b66b0c864f5c9a4e9165faa850a4','1 of 1 points. Waived, so everybody has its points: Its text was not clear.',NULL);
INSERT INTO "comment" VALUES('b92ba6bdb70b480fb33e9d8c190eb425','e273fc69cf75498abee27b8ab61eea54','65e15c9248004ab6b0fd6831b3736a02',NULL,'Well said.');
INSERT INTO "comment" VALUES('d814e7dc62c945438c6e482caacc16e4','191490b338df4fd48ee7399640472aad','4a5e452afb31423da69cd60c88d049db','1.5 of 2 points. Not earned: edges.',NULL);
INSERT INTO "comment" VALUES('8620eaf04f91490784995b7ed6f01ad4','191490b338df4fd48ee7399640472aad','4443b66b0c864f5c9a4e9165faa850a4','1 of 1 points. Waived, so everybody has its points: Its text was not clear.',NULL);
INSERT INTO "comment" VALUES('4d17e10a8dce4cc2a901cf117e37b61b','191490b338df4fd48ee7399640472aad','65e15c9248004ab6b0fd6831b3736a02',NULL,NULL);
INSERT INTO "comment" VALUES('52d5a30305c94dbaa7411cc4e33703ac','e67b7666115f44aa929b01a92b099940','4a5e452afb31423da69cd60c88d049db','Quarantined: It is no notebook.',NULL);
INSERT INTO "comment" VALUES('3317ffcf07e94b26b4f635eaa6221587','e67b7666115f44aa929b01a92b099940','4443b66b0c864f5c9a4e9165faa850a4','Quarantined: It is no notebook.',NULL);
INSERT INTO "comment" VALUES('24c2ec26a02243fb9dd7c77b23ab42f3','e67b7666115f44aa929b01a92b099940','65e15c9248004ab6b0fd6831b3736a02','Quarantined: It is no notebook.',NULL);
INSERT INTO "comment" VALUES('c945af72478848159fd3c676b3d45d70','4dc208d4d5124357a57cc8ebaff5174a','4a5e452afb31423da69cd60c88d049db','could_not_judge: Too deep.',NULL);
INSERT INTO "comment" VALUES('da84849ac0404c8bbd3d866d85bf4ee8','4dc208d4d5124357a57cc8ebaff5174a','4443b66b0c864f5c9a4e9165faa850a4','1 of 1 points. Waived, so everybody has its points: Its text was not clear.',NULL);
INSERT INTO "comment" VALUES('550de35d972742e78c5ae9d670040fe8','4dc208d4d5124357a57cc8ebaff5174a','65e15c9248004ab6b0fd6831b3736a02',NULL,NULL);
INSERT INTO "comment" VALUES('04037e9de2b140e49683f0074eab4e5c','fcd392969ffa413fbb2927538351e653','4a5e452afb31423da69cd60c88d049db','Failed: The grader failed.',NULL);
INSERT INTO "comment" VALUES('bce2a224ee4d4e36a607dc57fb3fa79b','fcd392969ffa413fbb2927538351e653','4443b66b0c864f5c9a4e9165faa850a4','Failed: The grader failed.',NULL);
INSERT INTO "comment" VALUES('d753cfdf166447429872295f9be61da6','fcd392969ffa413fbb2927538351e653','65e15c9248004ab6b0fd6831b3736a02','Failed: The grader failed.',NULL);
INSERT INTO "comment" VALUES('32fea8fdb7d54c94b4abeb0dd22c5134','c8af4b284d0c4e83938edecbab12843d','4a5e452afb31423da69cd60c88d049db','needs_gpu: This exercise needs a GPU.',NULL);
INSERT INTO "comment" VALUES('88b1ba8836124c6bb2bf8a40efa7cca1','c8af4b284d0c4e83938edecbab12843d','4443b66b0c864f5c9a4e9165faa850a4','1 of 1 points. Waived, so everybody has its points: Its text was not clear.',NULL);
INSERT INTO "comment" VALUES('d50685cb4bff4b3286b322a983e41d94','c8af4b284d0c4e83938edecbab12843d','65e15c9248004ab6b0fd6831b3736a02',NULL,NULL);
INSERT INTO "comment" VALUES('cf5e18460bc74739bb23fa9428868f5e','34bab05388e04470a22ae7b6895e5702','4a5e452afb31423da69cd60c88d049db','0 of 2 points. Not earned: edges.',NULL);
INSERT INTO "comment" VALUES('0ae7a8407813413eaf2ad489837198d7','34bab05388e04470a22ae7b6895e5702','4443b66b0c864f5c9a4e9165faa850a4','1 of 1 points. Waived, so everybody has its points: Its text was not clear.',NULL);
INSERT INTO "comment" VALUES('ab0666bcd4304901a69668cdf117c889','34bab05388e04470a22ae7b6895e5702','65e15c9248004ab6b0fd6831b3736a02',NULL,NULL);
CREATE TABLE course (
	id VARCHAR(128) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (id)
);
INSERT INTO "course" VALUES('default_course');
CREATE TABLE grade (
	id VARCHAR(32) NOT NULL, 
	notebook_id VARCHAR(32), 
	cell_id VARCHAR(32), 
	auto_score FLOAT, 
	manual_score FLOAT, 
	extra_credit FLOAT, 
	needs_manual_grade BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (cell_id, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES submitted_notebook (id), 
	FOREIGN KEY(cell_id) REFERENCES base_cell (id)
);
INSERT INTO "grade" VALUES('59dd60f4eab740ef8bc32bca9b9936d4','e273fc69cf75498abee27b8ab61eea54','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('9d22adcb6b0b45eb81cd27901845cd0c','e273fc69cf75498abee27b8ab61eea54','23701fca8f7041eb929dbdacc251a774',2.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('ce00e2f32fbf445e9d37bdd4fed8f4d5','e273fc69cf75498abee27b8ab61eea54','bdda51d6dc07478594d11213de15920e',1.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('bf3a81131d934d4b9a8a4bfa67fc78d9','e273fc69cf75498abee27b8ab61eea54','b15cb5700cc34cf59f2d617aaff0080f',NULL,1.5,NULL,0);
INSERT INTO "grade" VALUES('c75c98ba8e4444e3b3acfbd83fa47660','191490b338df4fd48ee7399640472aad','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('81b2e5e5e0354b7b91b2dfaac18a2d35','191490b338df4fd48ee7399640472aad','23701fca8f7041eb929dbdacc251a774',1.5,1.25,NULL,0);
INSERT INTO "grade" VALUES('ce40ad5113904fdd8c988b64c9314960','191490b338df4fd48ee7399640472aad','bdda51d6dc07478594d11213de15920e',1.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('99bc569deb3b455d9dd018e96d75c713','191490b338df4fd48ee7399640472aad','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('5ad203dca305465a88629ed481510481','e67b7666115f44aa929b01a92b099940','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('3df225287c4c4e1c919020beffa161a0','e67b7666115f44aa929b01a92b099940','23701fca8f7041eb929dbdacc251a774',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('3200977d1c934abab21a8d0e0d47d11d','e67b7666115f44aa929b01a92b099940','bdda51d6dc07478594d11213de15920e',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('1ee2e6acb4984a129a40e201c7f0b519','e67b7666115f44aa929b01a92b099940','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('13a501d03d3d43bc947f23214d9e2d2c','4dc208d4d5124357a57cc8ebaff5174a','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('fb1f8fed43334e819baa107a5466103f','4dc208d4d5124357a57cc8ebaff5174a','23701fca8f7041eb929dbdacc251a774',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('e12137ff66fe4c8e9be269305f1d62d2','4dc208d4d5124357a57cc8ebaff5174a','bdda51d6dc07478594d11213de15920e',1.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('421c53f0b0654842a9f0e55b8833dcb7','4dc208d4d5124357a57cc8ebaff5174a','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('dcddaef2f9034f1681fd48cac48ef64f','fcd392969ffa413fbb2927538351e653','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('2afb0e683dc54bfeba40650d4f87e566','fcd392969ffa413fbb2927538351e653','23701fca8f7041eb929dbdacc251a774',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('43e5c90b108143ccac9a398e696bf9d1','fcd392969ffa413fbb2927538351e653','bdda51d6dc07478594d11213de15920e',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('b6c2234b462540489a6380f027f0287a','fcd392969ffa413fbb2927538351e653','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('67f02866ec7a4677ac2eb0b32b10b56d','c8af4b284d0c4e83938edecbab12843d','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('dc9b86105b634b5b937215c32d6e4a54','c8af4b284d0c4e83938edecbab12843d','23701fca8f7041eb929dbdacc251a774',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('6b8d904546a4480eb9d48ef88d6f29a8','c8af4b284d0c4e83938edecbab12843d','bdda51d6dc07478594d11213de15920e',1.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('86e6aa9386b44152825c957480ef3e00','c8af4b284d0c4e83938edecbab12843d','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
INSERT INTO "grade" VALUES('304c1ae9f7b04ff0b848d55b9114341f','34bab05388e04470a22ae7b6895e5702','68960c5f74de4ce4ba003d37b94bdb87',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('6d7d5c841d6349c7ba92f6e14db2590d','34bab05388e04470a22ae7b6895e5702','23701fca8f7041eb929dbdacc251a774',0.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('ef1129904b2e443a899bce68c9a656c4','34bab05388e04470a22ae7b6895e5702','bdda51d6dc07478594d11213de15920e',1.0,NULL,NULL,0);
INSERT INTO "grade" VALUES('36335d14d3d14e8ab3356c6656f39e66','34bab05388e04470a22ae7b6895e5702','b15cb5700cc34cf59f2d617aaff0080f',NULL,NULL,NULL,1);
CREATE TABLE grade_cells (
	id VARCHAR(32) NOT NULL, 
	max_score FLOAT NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
INSERT INTO "grade_cells" VALUES('68960c5f74de4ce4ba003d37b94bdb87',0.0,'code');
INSERT INTO "grade_cells" VALUES('23701fca8f7041eb929dbdacc251a774',2.0,'code');
INSERT INTO "grade_cells" VALUES('bdda51d6dc07478594d11213de15920e',1.0,'code');
INSERT INTO "grade_cells" VALUES('b15cb5700cc34cf59f2d617aaff0080f',2.0,'markdown');
CREATE TABLE notebook (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	assignment_id VARCHAR(32), 
	kernelspec VARCHAR(1024), 
	PRIMARY KEY (id), 
	UNIQUE (name, assignment_id), 
	FOREIGN KEY(assignment_id) REFERENCES assignment (id)
);
INSERT INTO "notebook" VALUES('0c37d25a97ef429c8e7077ebf6182118','lab05_accumulation','84fb375f95a440859ca54b7a08b853fd','{"display_name": "Python 3", "language": "python", "name": "python3"}');
CREATE TABLE solution_cells (
	id VARCHAR(32) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
INSERT INTO "solution_cells" VALUES('4a5e452afb31423da69cd60c88d049db');
INSERT INTO "solution_cells" VALUES('4443b66b0c864f5c9a4e9165faa850a4');
INSERT INTO "solution_cells" VALUES('65e15c9248004ab6b0fd6831b3736a02');
CREATE TABLE source_cell (
	id VARCHAR(32) NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	locked BOOLEAN NOT NULL, 
	source TEXT, 
	checksum VARCHAR(128), 
	notebook_id VARCHAR(32), 
	PRIMARY KEY (id), 
	UNIQUE (name, notebook_id), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
INSERT INTO "source_cell" VALUES('3c4e78788fc34ecba54f5eee62dc3700','lab05-title','markdown',1,'# A lab',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('d0326f6c25c149cdada6d6660fe88401','lab05-setup','code',1,'import peakmem
limit = 10',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('15945ff05eee453b87c5b47aafbed894','lab05-double-solution','code',0,'def double(x):
    # YOUR CODE HERE
    raise NotImplementedError()',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('4d364f733b77402995f743d2a7cd247a','lab05-double-check','code',1,'assert double(2) == 4',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('4cdbddb3a3164178b3390fa7bf297c72','lab05-double','code',1,'# hidden cases run here',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('6ebaf17b114b4ebf963a88e33306aea5','lab05-given','code',1,'scale = limit * 2',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('d4a1bcea5b574db8962f12fe5c984972','lab05-halve-solution','code',0,'import math

def halve(x):
    # YOUR CODE HERE
    raise NotImplementedError()',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('5310562ddf1a4cdca5824179f6547316','lab05-halve','code',1,'# hidden cases run here too',NULL,'0c37d25a97ef429c8e7077ebf6182118');
INSERT INTO "source_cell" VALUES('5ed2d3a1223e43ee90d97a3ba5ba4bd9','lab05-explain','markdown',0,'YOUR ANSWER HERE',NULL,'0c37d25a97ef429c8e7077ebf6182118');
CREATE TABLE student (
	id VARCHAR(128) NOT NULL, 
	first_name VARCHAR(128), 
	last_name VARCHAR(128), 
	email VARCHAR(128), 
	lms_user_id VARCHAR(128), 
	PRIMARY KEY (id)
);
INSERT INTO "student" VALUES('ada','','Lovelace','','');
INSERT INTO "student" VALUES('kim','','kim','','');
INSERT INTO "student" VALUES('lin','','lin','','');
INSERT INTO "student" VALUES('mia','','mia',NULL,NULL);
INSERT INTO "student" VALUES('nur','','nur',NULL,NULL);
INSERT INTO "student" VALUES('pam','','pam',NULL,NULL);
INSERT INTO "student" VALUES('sam','','sam',NULL,NULL);
INSERT INTO "student" VALUES('zoe','','Absent','','');
CREATE TABLE submitted_assignment (
	id VARCHAR(32) NOT NULL, 
	assignment_id VARCHAR(32), 
	student_id VARCHAR(128), 
	timestamp DATETIME, 
	extension DATETIME, 
	PRIMARY KEY (id), 
	UNIQUE (assignment_id, student_id), 
	FOREIGN KEY(assignment_id) REFERENCES assignment (id), 
	FOREIGN KEY(student_id) REFERENCES student (id)
);
INSERT INTO "submitted_assignment" VALUES('d8f32aaa3fd64cc3a152a972640fa9ab','84fb375f95a440859ca54b7a08b853fd','ada',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('916f789dd7ad48f5b8da9c5c4da83f2f','84fb375f95a440859ca54b7a08b853fd','kim',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('49aed30d58f84ed9b29ad835091d373c','84fb375f95a440859ca54b7a08b853fd','lin',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('eea23290cd1a42bc9fe3caaa049dbc88','84fb375f95a440859ca54b7a08b853fd','mia',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('51be99d8e4f94679af87de59500e679f','84fb375f95a440859ca54b7a08b853fd','nur',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('522e5dcfe1bc486ab671fadbb9cd9036','84fb375f95a440859ca54b7a08b853fd','pam',NULL,NULL);
INSERT INTO "submitted_assignment" VALUES('7485e56885c74216ae3b65b62b766c76','84fb375f95a440859ca54b7a08b853fd','sam',NULL,NULL);
CREATE TABLE submitted_notebook (
	id VARCHAR(32) NOT NULL, 
	assignment_id VARCHAR(32), 
	notebook_id VARCHAR(32), 
	flagged BOOLEAN, 
	late_submission_penalty FLOAT, 
	PRIMARY KEY (id), 
	UNIQUE (notebook_id, assignment_id), 
	FOREIGN KEY(assignment_id) REFERENCES submitted_assignment (id), 
	FOREIGN KEY(notebook_id) REFERENCES notebook (id)
);
INSERT INTO "submitted_notebook" VALUES('e273fc69cf75498abee27b8ab61eea54','d8f32aaa3fd64cc3a152a972640fa9ab','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('191490b338df4fd48ee7399640472aad','916f789dd7ad48f5b8da9c5c4da83f2f','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('e67b7666115f44aa929b01a92b099940','49aed30d58f84ed9b29ad835091d373c','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('4dc208d4d5124357a57cc8ebaff5174a','eea23290cd1a42bc9fe3caaa049dbc88','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('fcd392969ffa413fbb2927538351e653','51be99d8e4f94679af87de59500e679f','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('c8af4b284d0c4e83938edecbab12843d','522e5dcfe1bc486ab671fadbb9cd9036','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
INSERT INTO "submitted_notebook" VALUES('34bab05388e04470a22ae7b6895e5702','7485e56885c74216ae3b65b62b766c76','0c37d25a97ef429c8e7077ebf6182118',0,NULL);
CREATE TABLE task_cells (
	id VARCHAR(32) NOT NULL, 
	max_score FLOAT NOT NULL, 
	cell_type VARCHAR(8) NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(id) REFERENCES base_cell (id)
);
COMMIT;
